"""StarFT: contrastive finetuning that keeps the zero-shot predictions on spurious texts."""

from __future__ import annotations

from tracer.core.teachers import Frozen
from tracer.core.terms import contrastive, spurious
from tracer.core.terms.contrastive import Targets
from tracer.methods.base import Method, Stage
from tracer.methods.text_probes import SETTINGS, Wrapped
from tracer.models.prompts import templates


def starft(
    *, strength: float = 0.5, levels: int = 0, nuisances: str = "", targets: Targets = "class"
) -> Method:
    """FLYP plus λ(t) KL(zero-shot ‖ student) over captions with nuisances.

    The captions are of other classes, with a nuisance setting.

    Args:
        strength: λ at the start; it decays linearly to 0.
        levels: decay in this number of steps instead, λ (1 − (e+1)/levels) in the e-th; published: one per epoch.
        nuisances: file with one setting per line, with {} for the caption; by default backgrounds.
        targets: positives of an image: all texts of its "class", or its own "pair" only.
    """

    def decay(progress: float) -> float:
        # Rounded, because 29/100 · 100 is below 29.
        done = (int(round(progress * levels, 9)) + 1) / levels if levels else progress
        return 1 - min(1.0, done)

    stage = Stage(
        contrastive(targets) + strength * (decay * spurious()),
        teacher=Frozen(),
        probe=Wrapped(templates(nuisances) if nuisances else SETTINGS),
    )
    return Method(
        (stage,), title="StarFT", paper="arXiv:2505.13232", year=2025, matter=("strength", "nuisances", "lr")
    )
