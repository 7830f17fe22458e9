"""Find models: open_clip's registry, the configs shipped here, local folders and files, the Hugging Face hub."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from torch import nn

from tracer.core.errors import UserError, suggestion, unknown
from tracer.models.config_check import check_model_config, checked_config, read_config
from tracer.models.download import (
    TEXT_FILES,
    Download,
    hub_files,
    hub_weights_needed,
    in_hub_cache,
    known_absent,
    reach_hub,
    reach_text_files,
)
from tracer.models.huggingface.activation import set_trunk_activation
from tracer.models.load_guards import check_text_tower, explained, kinds_of_numbers, quiet
from tracer.models.open_clip_compat import open_clip
from tracer.models.weights_file import published_settings
from tracer.storage.folders import folders_inside, no_such_folder
from tracer.storage.safetensors_io import file_blake2b

CONFIG_FILE = "open_clip_config.json"
WEIGHTS_FILE = "open_clip_model.safetensors"
WEIGHTS_DIGEST = "weights_digest"  # in an export's config, beside what open_clip reads
FOLDERS = ("experiment.json", CONFIG_FILE, "config.json")  # a folder with one of them is a run or a model
SCHEMAS = ("hf-hub:", "local-dir:")  # prefixes of models that come with weights
REQUIRED = ("embed_dim", "vision_cfg", "text_cfg")  # keys of a model config


@dataclass(frozen=True)
class ModelSource:
    """A model that exists: its name in open_clip, its weights and its config."""

    name: str
    weights: str | None
    config: dict[str, Any]
    digest: str | None = None  # of the weights file of an exported folder, from its config
    preprocess: dict[str, Any] | None = None  # how weights in a file want their images

    def build(self) -> Any:
        """The open_clip model, in fp32 on the CPU, in train mode."""
        if self.digest is not None and self.file and file_blake2b(self.file) != self.digest:
            raise UserError(f"{self.file} is damaged: it does not match its digest in {CONFIG_FILE}")
        self.fetch()
        random = self.weights is None and not self.name.startswith(SCHEMAS)
        source = f" with weights {self.weights!r}" if self.weights else ""
        text = self._text_tower()
        with quiet(), explained(self.name + source), kinds_of_numbers() as kinds:
            if text.get("hf_model_name"):
                check_text_tower(text["hf_model_name"])
            clip = open_clip.create_model(
                self.name,
                pretrained=self.weights,
                force_quick_gelu=bool(self.config.get("quick_gelu")),
                force_preprocess_cfg=self.preprocess,
                pretrained_text=False,  # do not download the base text tower of an HF model
                text_cfg=text,
                require_pretrained=not random,
                weights_only=True,
            )
        for name, tensor in clip.state_dict().items():
            kind = kinds.get(name, kinds.get(name.removeprefix("text.")))  # older files have no prefix
            if kind is not None and tensor.is_floating_point():
                raise UserError(
                    f"{self.name}{source}: {name} holds numbers of type {kind}, not {tensor.dtype}"
                )
        set_trunk_activation(clip, self.config)
        if random and isinstance(clip, open_clip.CoCa):
            # open_clip leaves this matrix as the memory was: not finite, or different at the same seed.
            projection: Any = clip.text_decoder.text_projection
            nn.init.normal_(projection, std=len(projection) ** -0.5)
        return clip.train()

    @property
    def download(self) -> Download | None:
        """The weights that open_clip fetches by their tag; None for random ones, and for those in a file or folder."""
        return Download(self.name, self.weights) if self.weights is not None and self.file is None else None

    def fetch(self) -> None:
        """Download the weights if they are not on this machine; the error says how to do without a network."""
        if self.needed() and self.download is not None:
            self.download.fetch()

    def needed(self) -> str:
        """What has to be downloaded, as a sentence; empty if all is here. Raises UserError if it is out of reach.

        Whether the files of a text tower or tokenizer of transformers can be had is checked too.
        """
        needed = self.download.needed() if self.download is not None else ""
        if self.name.startswith("hf-hub:"):
            needed = hub_weights_needed(self.name.removeprefix("hf-hub:"))
        # A local folder has the files of its tokenizer beside the weights.
        if not self.name.startswith("local-dir:"):
            reach_text_files(self.name, self.config["text_cfg"])
        return needed

    def outlook(self) -> str:
        """What training has to fetch first, or why it cannot, as a sentence; empty if all is on this machine."""
        try:
            return self.needed()
        except UserError as error:
            return str(error)

    @property
    def file(self) -> Path | None:
        """The local weights file, if there is one."""
        if self.weights:
            return Path(self.weights) if Path(self.weights).is_file() else None
        if not self.name.startswith("local-dir:"):
            return None
        chosen = open_clip.factory._find_checkpoint_in_dir(Path(self.name.removeprefix("local-dir:")))
        if chosen and not Path(chosen).is_file():  # a pipe or a device would be read without an end
            raise UserError(f"{chosen} is no file")
        return Path(chosen) if chosen else None

    @property
    def files(self) -> list[Path]:
        """The local files that the weights are in; none if they are not on this machine or come by name."""
        return [self.file] if self.file else []

    @property
    def fetched(self) -> dict[str, Path]:
        """The files of this model that came from the network, by name: another download may replace them."""
        text = self.config.get("text_cfg") or {}
        names = [self.name] if self.name.startswith("hf-hub:") else []
        names += [text[name] for name in TEXT_FILES if text.get(name)]
        files = {} if self.download is None else self.download.stored
        for name in names:
            files |= hub_files(name.removeprefix("hf-hub:"))
        return files

    def _text_tower(self) -> dict[str, Any]:
        """The settings of the text tower. An export of a tower of transformers has its config in its own folder.

        The name in the model's config may be a folder of another machine, or a repository out of reach.
        """
        folder, text = Path(self.name.removeprefix("local-dir:")), self.config.get("text_cfg") or {}
        if not text.get("hf_model_name"):
            return text
        place = str(folder) if (folder / "config.json").is_file() else text["hf_model_name"]
        return {**text, "hf_model_name": place, "hf_model_pretrained": False}

    def tokeniser(self) -> Any:
        """The model's function from texts to token ids."""
        from_hub = bool(self.config["text_cfg"].get("hf_tokenizer_name"))
        with quiet(), explained(f"the tokenizer of {self.name}"):
            if from_hub:
                return open_clip.get_tokenizer(self.name, trust_remote_code=False)
            return _tokeniser(self.name, json.dumps(self.config["text_cfg"]))


@cache
def _tokeniser(name: str, text_config: str) -> Any:
    """open_clip's own tokenizer of a model, built once: its table takes longer to read than a small model's weights."""
    del text_config  # of a folder that is written anew, it may differ under the same name
    return open_clip.get_tokenizer(name)


CONFIGS = Path(str(files("tracer.models") / "configs"))


@cache
def known_models() -> tuple[str, ...]:
    """Names of all model configs: open_clip's and those shipped here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        open_clip.add_model_config(CONFIGS)
    return tuple(open_clip.list_models())


def shipped_models() -> list[str]:
    """Names of the small models whose configs are shipped here."""
    return sorted(file.stem for file in CONFIGS.glob("*.json"))


def locate(model: str, pretrained: str | None = None) -> ModelSource:
    """Find a model by name, folder, config file or hub name; the error for an unknown name suggests similar ones."""
    known_models()
    if model.startswith("hf-hub:"):
        return _from_hub(model.removeprefix("hf-hub:"))
    path = Path(model.removeprefix("local-dir:"))
    if path.is_dir():
        return _from_folder(path)
    if path.suffix == ".json" and path.is_file():
        model = _register(path)
    name = model.replace("/", "-")
    config = open_clip.get_model_config(name)
    if config is None:
        if "/" in model and not get_close_matches(name, known_models()):
            hub = f"; a model of the Hugging Face hub is hf-hub:{model}" if model.count("/") == 1 else ""
            raise UserError(f"{no_such_folder('run or model', path, FOLDERS)}{hub}")
        hint = suggestion(model, known_models())
        raise UserError(f"there is no run or folder {model!r}, and no model of this name: {hint}")
    if any(config.get("text_cfg", {}).get(name) for name in TEXT_FILES) and find_spec("transformers") is None:
        raise UserError(f"{model} needs the package transformers: pip install 'tracer-clip[hf]'")
    return _from_registry(name, pretrained, config)


def _from_hub(repository: str) -> ModelSource:
    from tracer.models.huggingface import source  # which needs this module

    model = f"hf-hub:{repository}"
    if source.only_transformers_cached(repository):
        return source.from_hub(repository)
    if not in_hub_cache(repository, CONFIG_FILE):
        reach_hub(f"{model} is", repository)
    try:
        with explained(model):
            content = open_clip.factory._get_hf_config(repository)
    except UserError:
        if not known_absent(repository, CONFIG_FILE):
            raise
        return source.from_hub(repository)
    return ModelSource(model, None, checked_config(content, f"{CONFIG_FILE} of {model}"))


def _from_folder(path: Path) -> ModelSource:
    from tracer.models.huggingface import source

    file = path / CONFIG_FILE
    if not file.is_file():
        if source.is_transformers_folder(path):
            return source.from_folder(path)
        raise UserError(
            f"{path} holds no {CONFIG_FILE}: it is neither an export of tracer nor of open_clip nor of transformers"
            f"{folders_inside(path, FOLDERS)}"
        )
    content = read_config(file)
    return ModelSource(
        f"local-dir:{path}", None, checked_config(content, str(file)), digest=content.get(WEIGHTS_DIGEST)
    )


def _register(path: Path) -> str:
    """Register a config file with open_clip; returns the model's name, the stem of the file."""
    config = read_config(path)
    if missing := [part for part in REQUIRED if part not in config]:
        raise UserError(f"{path} is not a model config: it has no {' and no '.join(missing)}")
    check_model_config(config, str(path))
    if open_clip.get_model_config(path.stem) != config:  # open_clip then reads all of its files again
        open_clip.add_model_config(path)
    return path.stem


def _from_registry(name: str, pretrained: str | None, config: dict[str, Any]) -> ModelSource:
    tags = open_clip.list_pretrained_tags_by_model(name)
    if pretrained is None:
        return ModelSource(name, None, config)
    file, _, tag = pretrained.rpartition("@")
    if Path(pretrained).is_file():
        file, tag = pretrained, ""
    if Path(file).is_file():
        quick, preprocess = published_settings(name, file, tag)
    elif pretrained in tags:
        # OpenAI's weights need QuickGELU; without it ViT-B-16 only warns and gives wrong results.
        quick, preprocess = bool(open_clip.get_pretrained_cfg(name, pretrained).get("quick_gelu")), None
        file = pretrained
    elif "/" in pretrained or "." in pretrained:
        choices = f", or a tag of {name}: {', '.join(tags)}" if tags else ""
        raise UserError(f"no weights at {pretrained}: give a file{choices}")
    else:
        raise unknown(f"weights of {name}", pretrained, tags)
    config = {**config, "quick_gelu": True} if quick else config
    return ModelSource(name, file, config, preprocess=preprocess)


def pretrained_tag(model: str, pretrained: str) -> str | None:
    """The weights that `--pretrained` stands for: a tag, a file, OpenAI's for "auto", None for "none".

    A folder or a hub model comes with its weights and accepts no others.
    """
    if model.startswith(SCHEMAS) or Path(model).is_dir():
        if pretrained not in ("auto", "none"):
            raise UserError(f"{model} brings its own weights: --pretrained {pretrained} has no use here")
        return None
    if pretrained != "auto":
        return None if pretrained == "none" else pretrained
    known_models()
    tags = open_clip.list_pretrained_tags_by_model(model.replace("/", "-"))
    if open_clip.get_model_config(model.replace("/", "-")) is not None and "openai" not in tags:
        choices = f"tags: {', '.join(tags)}" if tags else "no tag is known for it"
        raise UserError(f"{model} has no OpenAI weights: give --pretrained ({choices}), a file, or none")
    return "openai"
