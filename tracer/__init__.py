"""tracer: finetune CLIP-style image-text models without losing what they already know."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from tracer import methods, recipes
    from tracer.api.evaluate import Scores, evaluate
    from tracer.api.export import export
    from tracer.api.finetune import finetune
    from tracer.api.load import load
    from tracer.api.merge import merge
    from tracer.api.run import run
    from tracer.core import kernels, terms
    from tracer.core.batch import Batch, Embedding, Scene
    from tracer.core.errors import UserError
    from tracer.core.kernels import Beta
    from tracer.core.objective import Loss, Objective, Term
    from tracer.core.shadow import Shadow
    from tracer.core.teachers import EMA, WMA, Frozen, Mass, Teacher
    from tracer.fitting.fit import fit
    from tracer.fitting.result import Fitted
    from tracer.runs.experiment import Experiment
    from tracer.runs.run import Run
    from tracer.training.loop import Report, Training

# Where each public name is defined. Names are imported on first use, so `import tracer` does not import torch.
_PLACES = {
    "evaluate": "tracer.api.evaluate",
    "export": "tracer.api.export",
    "finetune": "tracer.api.finetune",
    "fit": "tracer.fitting.fit",
    "load": "tracer.api.load",
    "merge": "tracer.api.merge",
    "run": "tracer.api.run",
    "Experiment": "tracer.runs.experiment",
    "Fitted": "tracer.fitting.result",
    "Report": "tracer.training.loop",
    "Run": "tracer.runs.run",
    "Scores": "tracer.api.evaluate",
    "Training": "tracer.training.loop",
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
    "Shadow": "tracer.core.shadow",
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
    "Experiment",
    "Fitted",
    "Frozen",
    "Loss",
    "Mass",
    "Objective",
    "Report",
    "Run",
    "Scene",
    "Scores",
    "Shadow",
    "Teacher",
    "Term",
    "Training",
    "UserError",
    "evaluate",
    "export",
    "finetune",
    "fit",
    "kernels",
    "load",
    "merge",
    "methods",
    "recipes",
    "run",
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
