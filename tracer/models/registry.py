"""Find models: open_clip's registry, the configs shipped here, local folders and files, the Hugging Face hub."""

from __future__ import annotations

import shlex
import warnings
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tracer.core.errors import UserError, suggestion, unknown
from tracer.models.config_check import check_model_config, checked_config, read_config
from tracer.models.download import TEXT_FILES, in_hub_cache, known_absent, reach_hub, text_files_missing
from tracer.models.huggingface import source as transformers
from tracer.models.load_guards import explained
from tracer.models.open_clip_compat import open_clip
from tracer.models.source import CONFIG_FILE, FOLDER, HUB, SCHEMAS, WEIGHTS_DIGEST, ModelSource
from tracer.storage.folders import folders_inside, no_such_folder

FOLDERS = ("experiment.json", CONFIG_FILE, "config.json")  # a folder with one of them is a run or a model
ONNX_FILE = "onnx_config.json"  # of an export as ONNX
REQUIRED = ("embed_dim", "vision_cfg", "text_cfg")  # keys of a model config
PIXELS = ("mean", "std", "interpolation", "resize_mode")
CONFIGS = Path(str(files("tracer.models") / "configs"))


@cache
def known_models() -> tuple[str, ...]:
    """Names of all configs of models with an image and a text tower: open_clip's and those shipped here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        open_clip.add_model_config(CONFIGS)
    configs = {name: open_clip.get_model_config(name) for name in open_clip.list_models()}
    return tuple(name for name, config in configs.items() if {"vision_cfg", "text_cfg"} <= config.keys())


def shipped_models() -> list[str]:
    """Names of the small models whose configs are shipped here."""
    return sorted(file.stem for file in CONFIGS.glob("*.json"))


def locate(model: str, pretrained: str | None = None) -> ModelSource:
    """Find a model by name, folder, config file or hub name; the error for an unknown name suggests similar ones."""
    known_models()
    if model.startswith(HUB):
        return _from_hub(model.removeprefix(HUB))
    path = Path(model.removeprefix(FOLDER))
    if path.is_dir():
        return _from_folder(path)
    if path.suffix == ".json" and path.is_file():
        model = _register(path)
    name = model.replace("/", "-")
    config = open_clip.get_model_config(name)
    if config is None:
        if "/" in model and not get_close_matches(name, known_models()):
            hub = f"; a model of the Hugging Face hub is {HUB}{model}" if model.count("/") == 1 else ""
            raise UserError(f"{no_such_folder('run or model', path, FOLDERS)}{hub}")
        hint = suggestion(model, known_models())
        raise UserError(f"there is no run or folder {model!r}, and no model of this name: {hint}")
    if any(config.get("text_cfg", {}).get(name) for name in TEXT_FILES) and find_spec("transformers") is None:
        raise UserError(f"{model} needs the package transformers: pip install 'tracer-clip[hf]'")
    return _from_registry(name, pretrained, config)


def _from_hub(repository: str) -> ModelSource:
    model = f"{HUB}{repository}"
    if transformers.only_transformers_cached(repository):
        return transformers.from_hub(repository)
    if not in_hub_cache(repository, CONFIG_FILE):
        reach_hub(f"{model} is", repository)
    try:
        with explained(model):
            content = open_clip.factory._get_hf_config(repository)
    except UserError:
        if not known_absent(repository, CONFIG_FILE):
            raise
        return transformers.from_hub(repository)
    return ModelSource(model, None, checked_config(content, f"{CONFIG_FILE} of {model}"))


def _from_folder(path: Path) -> ModelSource:
    file = path / CONFIG_FILE
    if file.is_file():
        content = read_config(file)
        config = checked_config(content, str(file))
        _require_known_repositories(config.get("text_cfg") or {}, path)
        return ModelSource(f"{FOLDER}{path}", None, config, digest=content.get(WEIGHTS_DIGEST))
    if transformers.is_transformers_folder(path):
        return transformers.from_folder(path)
    if (path / ONNX_FILE).is_file():
        raise UserError(
            f"{path} is an ONNX export of tracer, which onnxruntime opens: README.md in it shows how; give the run, or "
            "an export in another format"
        )
    raise UserError(
        f"{path} holds no {CONFIG_FILE}: it is neither an export of tracer nor of open_clip nor of transformers"
        f"{folders_inside(path, FOLDERS)}"
    )


def _require_known_repositories(text: dict[str, Any], folder: Path) -> None:
    """Raise if a folder's config names a text tower or tokenizer of the hub which is neither here nor open_clip's."""
    configs = (open_clip.get_model_config(name)["text_cfg"] for name in known_models())
    known = {config.get(key) for config in configs for key in TEXT_FILES}
    needed = {key: text.get(key) for key, file in TEXT_FILES.items() if not (folder / file).is_file()}
    with explained(str(folder)):  # they may be no names
        missing = text_files_missing(needed)
    for repository in missing:
        if repository not in known:
            raise UserError(
                f"{folder} names {repository} of the Hugging Face hub, which is not on this machine, and a folder is "
                f"not followed there: if you know it, fetch it yourself with: hf download {shlex.quote(repository)}"
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
    file, _, tag = (pretrained, "", "") if Path(pretrained).is_file() else pretrained.rpartition("@")
    if Path(file).is_file():
        if tag and tag not in tags:
            raise unknown(f"weights of {name}", tag, tags)
        quick, preprocess = _settings_of_file(name, file, [tag] if tag else tags)
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


def _settings_of_file(model: str, file: str, tags: list[str]) -> tuple[bool, dict[str, Any] | None]:
    """Whether the weights in `file` need QuickGELU, and how they want their images; None: as usual.

    A file does not say so. They are taken to be like the published weights `tags`; raises UserError, with the tags to
    choose from, where these differ.
    """
    kinds: dict[tuple[Any, ...], list[str]] = {}
    for tag in tags:
        published = open_clip.get_pretrained_cfg(model, tag)
        kind = (bool(published.get("quick_gelu")), *(published.get(key) for key in PIXELS))
        kinds.setdefault(kind, []).append(tag)
    if len(kinds) > 1:
        choices = "; ".join(f"@{alike[0]} (and {len(alike) - 1} more)" for alike in kinds.values())
        raise UserError(
            f"{file} does not say which weights of {model} it is like, and those differ in pixels or activation: give "
            f"--pretrained {file}@TAG, with TAG one of {choices}"
        )
    quick, *pixels = next(iter(kinds), (False, *[None] * len(PIXELS)))
    preprocess = {key: value for key, value in zip(PIXELS, pixels, strict=True) if value is not None}
    return quick, preprocess or None


def pretrained_tag(model: str, pretrained: str) -> str | None:
    """The weights that `--pretrained` stands for: a tag, a file, OpenAI's for "auto", None for "none".

    A folder or a hub model comes with its weights and accepts no others.
    """
    if model.startswith(SCHEMAS) or Path(model).is_dir():
        if pretrained != "auto":
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
