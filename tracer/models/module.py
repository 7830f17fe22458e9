"""Modules of open_clip and transformers that were built or loaded elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from tracer.core.errors import UserError
from tracer.models.huggingface.source import TransformersSource
from tracer.models.load_guards import quiet
from tracer.models.open_clip_compat import open_clip
from tracer.models.registry import known_models, locate
from tracer.models.student import Student


def from_module(module: nn.Module, name: str | None = None) -> Student:
    """A student with the weights of a module, and with the tokenizer and the config of the model it is.

    An open_clip module, which the student holds, does not know its own config: without `name`, the config is the first
    of open_clip's whose model has the same parts and shapes. The weights of a transformers module are copied; its
    processor is read from `name`, by default from where the module was loaded.
    """
    if isinstance(module, Student):
        return module
    if type(module).__module__.startswith("transformers."):
        return _from_transformers(module, name)
    if not isinstance(module, open_clip.CLIP | open_clip.CustomTextCLIP | open_clip.CoCa):
        raise UserError(
            f"a model cannot be a {type(module).__name__}: expected a name, a folder, or a model of open_clip or "
            "transformers"
        )
    name = name or _name(module)
    place = locate(name)
    return Student(module, place.tokeniser(), name=place.name, config=_config(module, place.config))


def _from_transformers(module: Any, name: str | None) -> Student:
    name = name or module.name_or_path
    if not name:
        raise UserError(
            "this module does not know where its processor is: give model=(module, folder or repository)"
        )
    source = locate(name if Path(name).is_dir() else f"hf-hub:{name.removeprefix('hf-hub:')}")
    if not isinstance(source, TransformersSource):
        raise UserError(f"{name} is no model of transformers: give model=(module, folder or repository)")
    weights = {key: tensor.detach().float().cpu() for key, tensor in module.state_dict().items()}
    return Student(source.build_with(weights), source.tokeniser(), name=source.name, config=source.config)


def _name(module: Any) -> str:
    image_size = module.visual.image_size
    size = image_size[0] if isinstance(image_size, tuple | list) else image_size
    expected = _outline(module)
    tokens = expected.get("token_embedding.weight", expected.get("text.token_embedding.weight"))
    for name in known_models():
        config = open_clip.get_model_config(name) or {}
        vision, text = config["vision_cfg"], config["text_cfg"]
        # Sizes that are cheap to compare come first: building every model on the meta device takes seconds.
        if vision.get("image_size", 224) != size or text.get("hf_model_name"):
            continue
        if tokens != (text.get("vocab_size", 49408), text.get("width", 512)):
            continue
        with torch.device("meta"), quiet():
            candidate = open_clip.create_model(name, device="meta", weights_only=True)
        if _outline(candidate) == expected:
            return name
    raise UserError(
        "this module is none of open_clip's models: give model=(module, name of its config), or save it with "
        "its config and give the folder"
    )


def _outline(module: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}


def _config(module: nn.Module, config: dict[str, Any]) -> dict[str, Any]:
    """The config with the activation that the module has: QuickGELU has no weights, and shapes do not show it."""
    quick = any(type(part).__name__ == "QuickGELU" for part in module.modules())
    return {**config, "quick_gelu": True} if quick else {k: v for k, v in config.items() if k != "quick_gelu"}
