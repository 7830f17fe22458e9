"""CAR-FT: finetuning that keeps the zero-shot model's predictions of the context (photo, sketch, toy…)."""

from __future__ import annotations

from tracer.core.teachers import Frozen
from tracer.core.terms import classify, context
from tracer.core.terms.probe import Direction
from tracer.methods.base import Method, Stage
from tracer.methods.text_probes import Contexts
from tracer.models.prompts import templates
from tracer.models.trainable import ImageTower


def carft(*, strength: float = 1.0, contexts: str = "openai", direction: Direction = "teacher") -> Method:
    """Cross-entropy plus λ KL between distributions over contexts.

    The KL is between the context distributions of the zero-shot and the finetuned model.

    No code was published: λ and the direction of the KL are unverified.

    Args:
        strength: λ, the weight of the KL.
        contexts: templates that describe the contexts: openai (80), simple (7), or a file.
        direction: the distribution that comes first in the KL, "teacher" or "student".
    """
    stage = Stage(
        classify() + strength * context(direction),
        teacher=Frozen(),
        tune=ImageTower(),
        probe=Contexts(templates(contexts)),
    )
    return Method(
        (stage,), title="CAR-FT", paper="arXiv:2211.16175", year=2022, matter=("strength", "contexts", "lr")
    )
