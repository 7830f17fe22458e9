"""A model in a folder of transformers, or in such a repository of the Hugging Face hub."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from huggingface_hub import constants, snapshot_download, try_to_load_from_cache
from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

from tracer.core.errors import UserError
from tracer.core.weights import Weights, check_fit
from tracer.models.config_check import check_model_config, read_config
from tracer.models.download import TEXT_PATTERNS, copy_cache, hub_weights_needed, in_hub_cache, reach_hub
from tracer.models.huggingface.architecture import FAMILIES, open_clip_config, set_trunk_activation
from tracer.models.huggingface.keys import to_open_clip
from tracer.models.huggingface.processor import preprocess_config
from tracer.models.load_guards import explained, quiet
from tracer.models.open_clip_compat import open_clip
from tracer.models.source import CONFIG_FILE, HUB, ModelSource
from tracer.storage.safetensors_io import read_weights

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
PROCESSORS = ("preprocessor_config.json", "processor_config.json")
TOKENIZER = "tokenizer_config.json"
LARGE = ("model*.safetensors", INDEX)


@dataclass(frozen=True, kw_only=True)
class TransformersSource(ModelSource):
    """A CLIP or SigLIP of transformers, built as an open_clip model with the same weights."""

    folder: Path
    repository: str = ""  # of the hub, empty for a folder

    def build(self) -> Any:
        self.fetch()
        tensors = (read_weights(file).items() for file in self.files)
        return self.build_with(dict(chain.from_iterable(tensors)))

    def build_with(self, weights: Weights) -> Any:
        """The open_clip model with these weights, which are named as transformers names them."""
        config = {name: value for name, value in self.config.items() if name != "custom_text"}
        custom = bool(self.config.get("custom_text"))
        with quiet(), explained(self.name):
            clip = (open_clip.CustomTextCLIP if custom else open_clip.CLIP)(**config)
        set_trunk_activation(clip, self.config)
        own = clip.state_dict()
        weights = to_open_clip(weights, own, self.name)
        check_fit(weights, own, what="the weights", owner=self.name)
        clip.load_state_dict(weights)
        open_clip.model.set_model_preprocess_cfg(clip, self.preprocess)
        return clip.train()

    def fetch(self) -> None:
        if not self.files and self.repository:
            _download(self.repository, LARGE, WEIGHTS)
        if not self.files:
            raise UserError(
                f"{self.name} holds no {WEIGHTS}, and weights in other files are not read: write it once with "
                "transformers' save_pretrained"
            )

    def needed(self) -> str:
        return hub_weights_needed(self.repository) if not self.files and self.repository else ""

    @property
    def files(self) -> list[Path]:
        """The files that the weights are in; raises UserError for a list that names others, or missing ones."""
        whole, index = self.folder / WEIGHTS, self.folder / INDEX
        if whole.is_file() or not index.is_file():
            return [whole] if whole.is_file() else []
        listed = read_config(index).get("weight_map")
        names = set(listed.values()) if isinstance(listed, dict) else set()
        if not names or not all(isinstance(name, str) and Path(name).name == name for name in names):
            raise UserError(f"{index} does not list files of its own folder")
        files = [self.folder / name for name in sorted(names)]
        if missing := next((file for file in files if not file.is_file()), None):
            raise UserError(f"{index} lists {missing.name}, which is not there")
        return files

    def tokeniser(self) -> Any:
        with quiet(), explained(f"the tokenizer of {self.name}"):
            return open_clip.tokenizer.HFTokenizer(
                str(self.folder),
                context_length=self.config["text_cfg"]["context_length"],
                trust_remote_code=False,
            )


def is_transformers_folder(folder: Path) -> bool:
    """Whether the folder holds a config as transformers writes it."""
    return (folder / CONFIG).is_file() and "model_type" in read_config(folder / CONFIG)


def from_folder(folder: Path, repository: str = "") -> TransformersSource:
    """The model in a folder; raises UserError if it cannot be held by open_clip or lacks a file."""
    name = f"{HUB}{repository}" if repository else str(folder)
    content = read_config(folder / CONFIG)
    config = open_clip_config(content, name, repository or folder.resolve().name)
    check_model_config(config, name)
    processor = next((folder / file for file in PROCESSORS if (folder / file).is_file()), None)
    if processor is None or not (folder / TOKENIZER).is_file():
        missing = PROCESSORS[0] if processor is None else TOKENIZER
        raise UserError(
            f"{name} holds no {missing}: write the processor beside the model with its save_pretrained"
        )
    stated = read_config(processor)
    stated = stated.get("image_processor", stated)  # nested in files of transformers 5
    if not isinstance(stated, dict):
        raise UserError(f"{processor}: image_processor is not an object but {json.dumps(stated):.60}")
    size = config["vision_cfg"]["image_size"]
    preprocess = preprocess_config(stated, content["model_type"], size, f"{processor.name} of {name}")
    return TransformersSource(
        name=name, weights=None, config=config, preprocess=preprocess, folder=folder, repository=repository
    )


def from_hub(repository: str) -> TransformersSource:
    """The model in a repository of the hub, whose small files are downloaded unless they are on this machine."""
    if not in_hub_cache(repository, CONFIG):
        _download(repository, TEXT_PATTERNS, CONFIG)
    return from_folder(Path(snapshot_download(repository, local_files_only=True)), repository)


def only_transformers_cached(repository: str) -> bool:
    """Whether this machine has the repository's config of transformers, of a known family, and not open_clip's."""
    with explained(f"hf-hub:{repository}"):  # the hub's client refuses what cannot be a name
        file = try_to_load_from_cache(repository, CONFIG)
    if not isinstance(file, str) or in_hub_cache(repository, CONFIG_FILE):
        return False
    return read_config(Path(file)).get("model_type") in tuple(FAMILIES)  # a list has no hash


def cached_repositories() -> list[str]:
    """Repositories of the hub with a model of a known family, weights included, that are on this machine."""
    folders = sorted(Path(constants.HF_HUB_CACHE).glob("models--*--*"))
    names = ["/".join(folder.name.split("--")[1:3]) for folder in folders]
    return [
        name
        for name in names
        if only_transformers_cached(name) and any(in_hub_cache(name, file) for file in (WEIGHTS, INDEX))
    ]


def _download(repository: str, patterns: tuple[str, ...], wanted: str) -> None:
    what = f"{wanted} of hf-hub:{repository} is"
    reach_hub(what, repository)
    try:
        snapshot_download(repository, allow_patterns=list(patterns))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError, ValueError) as error:
        answer = f"the hub answers: {str(error).splitlines()[0]:.150}"
        raise UserError(f"{what} not on this machine and {answer}: {copy_cache(repository)}") from None
