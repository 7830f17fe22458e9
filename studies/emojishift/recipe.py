"""EmojiShift: pretrain a small CLIP on the names of emoji, then finetune it to classify their kinds in one style.

Expected results are in docs/evidence.md; `tracer evidence` runs all of it. On one core, pretraining (1 200 steps)
takes about 18 minutes and finetuning (200 steps) 1 to 3.
"""

from __future__ import annotations

from typing import Any

from tracer.data.embedded.emojishift import Regime
from tracer.runs.experiment import Experiment


def pretraining(regime: Regime = "strong", seed: int = 0, steps: int = 1200) -> Experiment:
    """A tiny CLIP from random weights on 70 % of the pairs of nine styles; all images of an emoji are positives."""
    spec = f"emoji:names:{regime}"
    return Experiment(
        method="flyp",
        options={"targets": "class"},
        data=spec,
        held_out=spec,
        model="tiny-32",
        pretrained="none",
        steps=steps,
        batch=256,
        lr=1e-3,
        augment="crop",
        precision="fp32",
        seed=seed,
    )


def finetuning(
    model: str,
    method: str = "tracer",
    *,
    regime: Regime = "strong",
    style: str = "twemoji",
    fold: int = 0,
    lr: float = 3e-4,
    steps: int = 200,
    seed: int = 0,
    **options: Any,
) -> Experiment:
    """Kinds of emoji in one style, with any method; validated on a fold used for neither training nor testing."""
    spec = f"emoji:{style}:{fold}"
    return Experiment(
        method=method,
        options=options,
        data=spec,
        held_out=spec,
        retain=(f"emoji:names:{regime}",),
        model=model,
        steps=steps,
        batch=128,
        lr=lr,
        augment="crop",
        precision="fp32",
        seed=seed,
    )
