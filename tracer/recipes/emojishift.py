"""EmojiShift: pretrain a small CLIP on the names of emoji, then finetune it to tell their kinds in one style.

What to expect is in docs/evidence.md; `tracer evidence` runs it all. A pretraining of 1 200 steps takes about 18
minutes of one core, a finetuning of 200 steps about 1 to 3.
"""

from __future__ import annotations

from typing import Any

from tracer.data.emoji_captions import Regime
from tracer.runs.experiment import Experiment


def pretraining(regime: Regime = "strong", seed: int = 0, steps: int = 1200) -> Experiment:
    """A tiny CLIP from nothing: 70 % of the pairs of nine styles with captions; two pictures of one emoji match."""
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
    """Kinds of emoji in one style, by any method; validated on a fold that neither trains nor tests."""
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
