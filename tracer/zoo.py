"""Where models come from: open_clip's zoo, the configs shipped here, local folders and files, the hub."""

from __future__ import annotations

import json
import logging
import warnings
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from tracer.clip import open_clip
from tracer.errors import UserError, unknown

CONFIG_FILE = "open_clip_config.json"
WEIGHTS_FILE = "open_clip_model.safetensors"


@dataclass(frozen=True)
class Place:
    """A model that exists: open_clip's way to name it, its weights and its config."""

    name: str
    weights: str | None
    config: dict[str, Any]
    quick_gelu: bool = False

    def build(self) -> Any:
        """The open_clip model, in fp32 on the CPU, in train mode."""
        quiet = logging.getLogger().getEffectiveLevel()
        logging.getLogger().setLevel(logging.ERROR)  # open_clip warns of random weights even where they are wanted
        try:
            clip = open_clip.create_model(
                self.name,
                pretrained=self.weights,
                force_quick_gelu=self.quick_gelu,
                pretrained_text=False,  # the base text tower of an HF model would be a silent download
                weights_only=True,
            )
        except (RuntimeError, ValueError, OSError, KeyError) as error:
            source = f" with weights {self.weights!r}" if self.weights else ""
            raise UserError(f"cannot build {self.name}{source}: {str(error).splitlines()[0][:300]}") from error
        finally:
            logging.getLogger().setLevel(quiet)
        return clip.train()

    def tokeniser(self) -> Any:
        return open_clip.get_tokenizer(self.name)


@cache
def known_models() -> tuple[str, ...]:
    """Names of every config: open_clip's and the small ones shipped here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        open_clip.add_model_config(Path(str(files("tracer") / "configs")))
    return tuple(open_clip.list_models())


def locate(model: str, pretrained: str | None = None) -> Place:
    """Find a model by name, folder, config file or hub name; say what is near when it is none of them."""
    known_models()
    if model.startswith("hf-hub:"):
        config = open_clip.factory._get_hf_config(model.removeprefix("hf-hub:"))
        return Place(model, None, config["model_cfg"])
    path = Path(model.removeprefix("local-dir:"))
    if path.is_dir():
        return _folder(path)
    if path.suffix == ".json" and path.is_file():
        open_clip.add_model_config(path)
        model = path.stem
    name = model.replace("/", "-")
    config = open_clip.get_model_config(name)
    if config is None:
        raise unknown("model", model, known_models())
    return _zoo(name, pretrained, config)


def _folder(path: Path) -> Place:
    file = path / CONFIG_FILE
    if not file.is_file():
        raise UserError(f"{path} holds no {CONFIG_FILE}: it is neither an export of tracer nor of open_clip")
    try:
        config = json.loads(file.read_text())["model_cfg"]
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{file} is not a model config: {error!r}") from None
    return Place(f"local-dir:{path}", None, config)


def _zoo(name: str, pretrained: str | None, config: dict[str, Any]) -> Place:
    tags = open_clip.list_pretrained_tags_by_model(name)
    if pretrained is None or Path(pretrained).is_file():
        return Place(name, pretrained, config)
    if pretrained not in tags:
        if "/" in pretrained or "." in pretrained:
            raise UserError(f"no weights at {pretrained}: give a file, or a tag of {name}: {', '.join(tags)}")
        raise unknown(f"weights of {name}", pretrained, tags)
    # OpenAI's weights were trained with QuickGELU; building ViT-B-16 without it only warns and scores wrongly.
    quick = bool(open_clip.get_pretrained_cfg(name, pretrained).get("quick_gelu"))
    return Place(name, pretrained, {**config, **({"quick_gelu": True} if quick else {})}, quick_gelu=quick)


def pretrained_tag(model: str, pretrained: str) -> str | None:
    """The weights meant: a tag or file as given, OpenAI's for "auto", nothing for "none" or a model that has its own."""
    if pretrained == "none" or model.startswith(("hf-hub:", "local-dir:")) or Path(model).is_dir():
        return None
    if pretrained != "auto":
        return pretrained
    known_models()
    tags = open_clip.list_pretrained_tags_by_model(model.replace("/", "-"))
    if open_clip.get_model_config(model.replace("/", "-")) is not None and "openai" not in tags:
        offer = f"tags: {', '.join(tags)}" if tags else "no tag is known for it"
        raise UserError(f"{model} has no OpenAI weights: give --pretrained ({offer}), a file, or none")
    return "openai"
