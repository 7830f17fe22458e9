"""tracer: finetune CLIP-style image-text models without losing what they already know."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0.dev0"

if TYPE_CHECKING:
    from tracer import methods, recipes
    from tracer.core import kernels, terms
    from tracer.core.batch import Batch, Embedding, Scene
    from tracer.core.errors import UserError
    from tracer.core.kernels import Beta
    from tracer.core.objective import Loss, Objective, Term
    from tracer.core.teachers import EMA, WMA, Frozen, Mass, Shadow, Teacher

# Where each public name is defined. Names are imported on first use, so `import tracer` does not import torch.
_PLACES = {
    "EMA": "tracer.core.teachers",
    "WMA": "tracer.core.teachers",
    "Batch": "tracer.core.batch",
    "Beta": "tracer.core.kernels",
    "Embedding": "tracer.core.batch",
    "Frozen": "tracer.core.teachers",
    "Loss": "tracer.core.objective",
    "Mass": "tracer.core.teachers",
    "Objective": "tracer.core.objective",
    "Scene": "tracer.core.batch",
    "Shadow": "tracer.core.teachers",
    "Teacher": "tracer.core.teachers",
    "Term": "tracer.core.objective",
    "UserError": "tracer.core.errors",
}
_MODULES = {
    "kernels": "tracer.core.kernels",
    "methods": "tracer.methods",
    "recipes": "tracer.recipes",
    "terms": "tracer.core.terms",
}

__all__ = [
    "EMA",
    "WMA",
    "Batch",
    "Beta",
    "Embedding",
    "Frozen",
    "Loss",
    "Mass",
    "Objective",
    "Scene",
    "Shadow",
    "Teacher",
    "Term",
    "UserError",
    "kernels",
    "methods",
    "recipes",
    "terms",
]


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(import_module(_PLACES[name]), name)
    if name in _MODULES:
        return import_module(_MODULES[name])
    raise AttributeError(f"module 'tracer' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
