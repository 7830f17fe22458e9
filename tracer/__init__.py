"""tracer: finetune CLIP-style image-text models without losing what they already know."""

from tracer import kernels, terms
from tracer.batch import Batch, Embedding, Scene
from tracer.errors import UserError
from tracer.kernels import Beta
from tracer.objective import Loss, Objective, Term
from tracer.teachers import EMA, WMA, Frozen, Mass, Shadow, Teacher

__version__ = "0.1.0"

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
    "terms",
]
