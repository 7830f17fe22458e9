"""The pretrained models of the study: a small CLIP on digits, on names of emoji, or on things; and PhotoShift's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from studies.choices.study import MODEL
from studies.fit.things import known_things
from studies.photoshift.bridge import bridge
from tracer.api.finetune import finetune
from tracer.data.embedded.emojishift import emoji_names
from tracer.data.sources import load
from tracer.models.export import export

SIZE = 64  # pixels of the images for PhotoShift's towers
STARTS: dict[str, Callable[[Path], tuple[Any, dict[str, Any]]]] = {
    "digits": lambda cache: (load("digits"), {"steps": 250}),
    "strong": lambda cache: (emoji_names("strong"), {"steps": 1500, "targets": "class"}),
    "weak": lambda cache: (emoji_names("weak"), {"steps": 1500, "targets": "class"}),
    "things": lambda cache: (known_things(cache), {"steps": 300}),
}


def start(name: str, folder: Path, cache: Path) -> Path:
    """The exported model of this name below `folder`, pretrained now if it is not there."""
    if name == "towers":
        return bridge(cache, SIZE)
    model = folder / name / "model"
    if not model.exists():
        data, settings = STARTS[name](cache)
        finished = finetune(
            data,
            model=str(MODEL),
            method="flyp",
            pretrained="none",
            batch=128,
            lr=1e-3,
            held_out_share=0.02,
            augment="none",
            precision="fp32",
            out=folder / name / "run",
            device="cpu",
            workers=0,
            callback=lambda report: None,
            **settings,
        )
        export(finished.student(), model)
    return model
