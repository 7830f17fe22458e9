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
    from tracer.evaluation.model import Model, Prediction, Predictions
    from tracer.fitting.fit import fit
    from tracer.fitting.result import Fitted
    from tracer.runs.experiment import Experiment
    from tracer.runs.run import Run
    from tracer.training.loop import Report, Training

# The public names by the module that defines them, which is imported on first use: `import tracer` without torch.
_NAMES = {
    "tracer.api.evaluate": ("Scores", "evaluate"),
    "tracer.api.export": ("export",),
    "tracer.api.finetune": ("finetune",),
    "tracer.api.load": ("load",),
    "tracer.api.merge": ("merge",),
    "tracer.api.run": ("run",),
    "tracer.core.batch": ("Batch", "Embedding", "Scene"),
    "tracer.core.errors": ("UserError",),
    "tracer.core.kernels": ("Beta",),
    "tracer.core.objective": ("Loss", "Objective", "Term"),
    "tracer.core.shadow": ("Shadow",),
    "tracer.core.teachers": ("EMA", "WMA", "Frozen", "Mass", "Teacher"),
    "tracer.evaluation.model": ("Model", "Prediction", "Predictions"),
    "tracer.fitting.fit": ("fit",),
    "tracer.fitting.result": ("Fitted",),
    "tracer.runs.experiment": ("Experiment",),
    "tracer.runs.run": ("Run",),
    "tracer.training.loop": ("Report", "Training"),
}
_PLACES = {name: module for module, names in _NAMES.items() for name in names}
_MODULES = {
    "kernels": "tracer.core.kernels",
    "methods": "tracer.methods",
    "recipes": "tracer.recipes",
    "terms": "tracer.core.terms",
}

# Written out for type checkers, which read no expressions here.
__all__ = ["evaluate", "export", "finetune", "fit", "load", "merge", "run"]
__all__ += ["Experiment", "Fitted", "Model", "Prediction", "Predictions", "Report"]
__all__ += ["Run", "Scores", "Training", "UserError"]
__all__ += ["EMA", "WMA", "Beta", "Frozen", "Mass", "Shadow", "Teacher"]
__all__ += ["Batch", "Embedding", "Loss", "Objective", "Scene", "Term"]
__all__ += ["kernels", "methods", "recipes", "terms"]


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(import_module(_PLACES[name]), name)
    if name in _MODULES:
        return import_module(_MODULES[name])
    raise AttributeError(f"module 'tracer' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
