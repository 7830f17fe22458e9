"""The pretrained models of the study: small CLIPs that read digits, or that name emoji."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tracer.api.run import Machine, run
from tracer.models.export import export
from tracer.recipes.emojishift import pretraining
from tracer.runs.experiment import Experiment

STARTS = {
    "digits": Experiment(
        method="flyp",
        data="digits",
        held_out="digits",
        model="tiny-28",
        pretrained="none",
        epochs=4,
        lr=1e-3,
        batch=128,
        augment="none",
        precision="fp32",
    ),
    "strong": replace(pretraining("strong", steps=200), batch=128),
    "weak": replace(pretraining("weak", steps=200), batch=128),
}


def start(name: str, folder: Path) -> Path:
    """The exported model of this name below `folder`, pretrained now if it is not there."""
    model = folder / name / "model"
    if not model.exists():
        finished = run(STARTS[name], folder / name / "run", Machine(device="cpu", workers=0))
        export(finished.student(), model)
    return model
