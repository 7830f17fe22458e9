"""Static self-distillation: TRACER's loss with the pretrained model as teacher."""

from __future__ import annotations

from tracer.core.teachers import Frozen
from tracer.core.terms.contrastive import Targets
from tracer.methods.base import Method
from tracer.methods.presets import Preset, composite, self_distillation
from tracer.models.trainable import Towers


def static_sd(
    *,
    preset: Preset = "released",
    strength: float = 0.9,
    targets: Targets = "class",
    tune: Towers = "both",
    distill_pairs: int = 1,
) -> Method:
    """TRACER's loss with the frozen pretrained model as teacher.

    The control for TRACER's moving teacher.

    Args:
        preset: coefficients of the loss terms, as in TRACER.
        strength: λ, the weight of the distillation loss.
        targets: positives of an image: all texts of its "class", or its own "pair" only, as in the paper.
        tune: train "both" towers and the temperature, the "image" tower, "norms", "biases", or "last-6" blocks.
        distill_pairs: show the teacher every k-th pair of a batch; approximate, cheaper.
    """
    loss = composite(preset, strength, targets)
    return self_distillation("Static self-distillation", Frozen(), loss, tune, distill_pairs)
