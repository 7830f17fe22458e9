"""CLIPood: a margin that depends on the similarity of classes, and the Beta average of the weights as the result."""

from __future__ import annotations

from tracer.core.kernels import Beta
from tracer.core.teachers import WMA
from tracer.core.terms import margin
from tracer.methods.base import Method, Stage, keep_teacher
from tracer.methods.heads import ZeroShot
from tracer.models.trainable import ImageTower


def clipood(*, strength: float = 0.3, beta: float = 0.5, prompt: str = "a photo of a {}.") -> Method:
    """Margin metric softmax on the image tower; keeps a Beta average.

    Class texts are fixed; what is kept is the Beta average of the weights.

    Args:
        strength: λ, the size of the margin.
        beta: shape of the Beta kernel; published: 0.5 for domain shift, 0.1 for open classes.
        prompt: the template of the class texts.
    """
    stage = Stage(
        margin(strength),
        teacher=WMA(Beta(beta)),
        tune=ImageTower(head=False),
        head=ZeroShot(folded=False, bias=False, prompts=(prompt,)),
    )
    return Method(
        (stage,),
        finish=keep_teacher,
        title="CLIPood",
        paper="arXiv:2302.00864",
        year=2023,
        matter=("strength", "beta", "lr"),
    )
