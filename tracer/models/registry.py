"""Where models come from: open_clip's zoo, the configs shipped here, local folders and files, the hub."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

from safetensors import SafetensorError

from tracer.core.errors import UserError, unknown
from tracer.models.open_clip_compat import open_clip
from tracer.storage.safetensors_io import digest

CONFIG_FILE = "open_clip_config.json"
WEIGHTS_FILE = "open_clip_model.safetensors"
WEIGHTS_DIGEST = "weights_digest"  # in an export's config, beside what open_clip reads
SCHEMAS = ("hf-hub:", "local-dir:")  # names that bring their own weights
PARTS = ("embed_dim", "vision_cfg", "text_cfg")  # what every model config has

# What open_clip and the readers of weights raise at files that are not what they should be.
UNREADABLE = (
    *(RuntimeError, ValueError, OSError, KeyError, SafetensorError),
    *(EOFError, StopIteration, AttributeError, TypeError, AssertionError),
)


@dataclass(frozen=True)
class Place:
    """A model that exists: open_clip's way to name it, its weights and its config."""

    name: str
    weights: str | None
    config: dict[str, Any]
    quick_gelu: bool = False
    digest: str | None = None  # of the weights file in a folder, where its config knows it

    def build(self) -> Any:
        """The open_clip model, in fp32 on the CPU, in train mode."""
        self._check_digest()
        source = f" with weights {self.weights!r}" if self.weights else ""
        with _quiet(), _explained(self.name + source):
            clip = open_clip.create_model(
                self.name,
                pretrained=self.weights,
                force_quick_gelu=self.quick_gelu,
                pretrained_text=False,  # the base text tower of an HF model would be a silent download
                require_pretrained=self.weights is not None or self.name.startswith(SCHEMAS),
                weights_only=True,
            )
        return clip.train()

    @property
    def file(self) -> Path | None:
        """The weights, where they are one file at hand; it may be replaced one day."""
        folder = Path(self.name.removeprefix("local-dir:"))
        file = Path(self.weights) if self.weights else folder / WEIGHTS_FILE
        return file if file.is_file() else None

    def _check_digest(self) -> None:
        if self.digest is not None and self.file and digest(self.file) != self.digest:
            raise UserError(f"{self.file} is damaged: it does not match its digest in {CONFIG_FILE}")

    def tokeniser(self) -> Any:
        """The function from texts to token ids that the model was made for."""
        return open_clip.get_tokenizer(self.name)


@contextmanager
def _quiet() -> Iterator[None]:
    """open_clip warns of random weights even where they are wanted."""
    level = logging.getLogger().getEffectiveLevel()
    logging.getLogger().setLevel(logging.ERROR)
    try:
        yield
    finally:
        logging.getLogger().setLevel(level)


@contextmanager
def _explained(wanted: str) -> Iterator[None]:
    """Whatever a foreign, cut or hostile file makes the readers raise, said in one sentence."""
    try:
        yield
    except UnpicklingError:  # torch's own message advises to run the code in the file
        raise UserError(f"cannot build {wanted}: a torch file must hold weights and nothing else") from None
    except UNREADABLE as error:
        told = " ".join(str(error).split()) or type(error).__name__
        raise UserError(f"cannot build {wanted}: {told[:300]}") from error


@cache
def known_models() -> tuple[str, ...]:
    """Names of every config: open_clip's and the small ones shipped here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        open_clip.add_model_config(Path(str(files("tracer.models") / "configs")))
    return tuple(open_clip.list_models())


def locate(model: str, pretrained: str | None = None) -> Place:
    """Find a model by name, folder, config file or hub name; say what is near when it is none of them."""
    known_models()
    if model.startswith("hf-hub:"):
        with _explained(model):
            config = open_clip.factory._get_hf_config(model.removeprefix("hf-hub:"))
            return Place(model, None, config["model_cfg"])
    path = Path(model.removeprefix("local-dir:"))
    if path.is_dir():
        return _folder(path)
    if path.suffix == ".json" and path.is_file():
        model = _known_by_file(path)
    name = model.replace("/", "-")
    config = open_clip.get_model_config(name)
    if config is None:
        raise unknown("model", model, known_models())
    return _zoo(name, pretrained, config)


def _folder(path: Path) -> Place:
    file = path / CONFIG_FILE
    if not file.is_file():
        raise UserError(f"{path} holds no {CONFIG_FILE}: it is neither an export of tracer nor of open_clip")
    told = _config(file)
    config = told.get("model_cfg")
    if not isinstance(config, dict):
        raise UserError(f"{file} is not a model config: it has no model_cfg")
    return Place(f"local-dir:{path}", None, config, digest=told.get(WEIGHTS_DIGEST))


def _known_by_file(path: Path) -> str:
    """Tell open_clip of a config file, which it then knows by the file's name."""
    config = _config(path)
    if missing := [part for part in PARTS if part not in config]:
        raise UserError(f"{path} is not a model config: it has no {' and no '.join(missing)}")
    open_clip.add_model_config(path)
    return path.stem


def _config(file: Path) -> dict[str, Any]:
    try:
        config = json.loads(file.read_text())
    except (ValueError, OSError) as error:
        raise UserError(f"{file} is not a readable config: {error}") from None
    return config if isinstance(config, dict) else {}


def _zoo(name: str, pretrained: str | None, config: dict[str, Any]) -> Place:
    tags = open_clip.list_pretrained_tags_by_model(name)
    if pretrained is None or Path(pretrained).is_file():
        return Place(name, pretrained, config)
    if pretrained not in tags:
        if "/" in pretrained or "." in pretrained:
            offer = f", or a tag of {name}: {', '.join(tags)}" if tags else ""
            raise UserError(f"no weights at {pretrained}: give a file{offer}")
        raise unknown(f"weights of {name}", pretrained, tags)
    # OpenAI's weights were trained with QuickGELU; ViT-B-16 without it only warns, and scores wrongly.
    quick = bool(open_clip.get_pretrained_cfg(name, pretrained).get("quick_gelu"))
    return Place(name, pretrained, {**config, **({"quick_gelu": True} if quick else {})}, quick_gelu=quick)


def pretrained_tag(model: str, pretrained: str) -> str | None:
    """The weights meant by `--pretrained`: a tag or a file as given, OpenAI's for "auto", nothing for "none".

    A folder or a hub model brings its own weights, and can have no others.
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
        offer = f"tags: {', '.join(tags)}" if tags else "no tag is known for it"
        raise UserError(f"{model} has no OpenAI weights: give --pretrained ({offer}), a file, or none")
    return "openai"
