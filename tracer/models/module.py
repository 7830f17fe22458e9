"""Modules of open_clip and transformers that were built or loaded elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn

from tracer.core.errors import UserError
from tracer.models.huggingface.source import TransformersSource
from tracer.models.open_clip_compat import open_clip
from tracer.models.registry import locate
from tracer.models.student import Student


def from_module(module: nn.Module, name: str | None = None) -> Student:
    """A student with the weights of a module, and with the tokenizer and the config of the model it is.

    An open_clip module, which the student holds, does not know its own config: `name` names it. The weights of a
    transformers module are copied; its processor is read from `name`, by default from where the module was loaded.
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
    if not name:
        raise UserError(
            "a module of open_clip does not know its config: give model=(module, its name), such as "
            '(module, "ViT-B-16"), or the folder it was loaded from'
        )
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


def _config(module: nn.Module, config: dict[str, Any]) -> dict[str, Any]:
    """The config with the activation that the module has: QuickGELU has no weights, and shapes do not show it."""
    quick = any(type(part).__name__ == "QuickGELU" for part in module.modules())
    return {**config, "quick_gelu": True} if quick else {k: v for k, v in config.items() if k != "quick_gelu"}
