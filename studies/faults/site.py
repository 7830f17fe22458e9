"""Where faults happen: two dozen images, a minute model, and what every command makes of them in peace."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import numpy as np
from PIL import Image

from studies.faults.life import End, live
from studies.faults.wounds import behind_rename, die

T = TypeVar("T")

STEPS = 8
MODEL = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": 28, "layers": 1, "width": 32, "head_width": 16, "patch_size": 14},
    "text_cfg": {"context_length": 16, "vocab_size": 49408, "width": 4, "heads": 1, "layers": 1},
}
RECIPE = '''
from tracer.experiment import Experiment
from tracer.sweep import product

def tiny():
    """Two seeds."""
    base = Experiment(data={data!r}, held_out={data!r}, model={model!r}, pretrained="none", templates="name",
                      steps=3, batch=8, lr=1e-3, augment="none", precision="fp32")
    return product(base, seed=range(2))
'''


@dataclass(frozen=True)
class Site:
    """A folder with data, a model and finished work to compare with; trials work in folders of their own."""

    folder: Path
    rng: Random
    quick: bool

    def __post_init__(self) -> None:
        noise = np.random.default_rng(0)
        for label, base in (("dark", 0), ("bright", 128)):
            (self.photos / label).mkdir(parents=True)
            for i in range(12):
                pixels = noise.integers(base, base + 128, (28, 28, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(self.photos / label / f"{i:02d}.png")
        self.model.write_text(json.dumps(MODEL))
        self.recipe.write_text(RECIPE.format(data=str(self.photos), model=str(self.model)))

    @property
    def photos(self) -> Path:
        return self.folder / "photos"

    @property
    def model(self) -> Path:
        return self.folder / "minute.json"

    @property
    def recipe(self) -> Path:
        return self.folder / "mine.py"

    def some(self, quick: int, all_of_them: int) -> int:
        """How many inputs to try."""
        return quick if self.quick else all_of_them

    def few(self, quick: int, choices: Iterable[T]) -> list[T]:
        """All of them; if time is short, a few at random."""
        found = list(choices)
        return self.rng.sample(found, quick) if self.quick else found

    def fresh(self, name: str) -> Path:
        """A place where nothing is."""
        place = self.folder / "trials" / name
        if place.is_dir():
            shutil.rmtree(place)
        place.unlink(missing_ok=True)
        place.parent.mkdir(exist_ok=True)
        return place

    def copy(self, source: Path, name: str) -> Path:
        """The same folder once more, to spoil."""
        place = self.fresh(name)
        shutil.copytree(source, place)
        return place

    def training(self, out: Path, *, data: Path | str | None = None, **flags: object) -> list[str]:
        """The command that trains, here with TRACER itself."""
        asked = {"steps": STEPS, "batch": 8, "lr": 1e-3, "save_every": 2, "workers": 0, **flags}
        told = [
            word
            for name, value in asked.items()
            for word in (f"--{name.replace('_', '-')}", str(value))
            if value is not None
        ]
        common = [
            "--model",
            str(self.model),
            "--pretrained",
            "none",
            "--templates",
            "name",
            "--device",
            "cpu",
        ]
        return ["train", "--data", str(data or self.photos), *common, *told, "--out", str(out)]

    def trained(self, out: Path, **how: Any) -> End:
        """Train or go on, whichever is due."""
        begun = (out / "experiment.json").exists()
        resuming = ["resume", str(out), "--save-every", "2", "--workers", "0", "--device", "cpu"]
        return live(resuming if begun else self.training(out), **how)

    @cached_property
    def run(self) -> Path:
        """A run that nothing happened to."""
        out = self.fresh("peaceful")
        end = self.trained(out)
        assert end.code == 0, end.last_words
        return out

    @cached_property
    def stopped(self) -> Path:
        """A run that died behind its third checkpoint, before the first one was dropped."""
        out = self.fresh("stopped")
        end = self.trained(out, wound=lambda: behind_rename(f"step-{STEPS - 2:09d}", die))
        assert end.killed, end.last_words
        return out


def outcome(run: Path) -> dict[str, Any]:
    """All that a finished run says, to the bit, but for what was only a warning."""
    weights = {file.name: digest(file) for file in sorted((run / "weights").glob("*.safetensors"))}
    log = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    result = json.loads((run / "result.json").read_text())
    return {"weights": weights, "log": [e for e in log if e["kind"] != "warning"], "result": result}


def difference(run: Path, other: Path) -> str:
    """Where two finished runs differ; nothing if they do not."""
    try:
        mine, theirs = outcome(run), outcome(other)
    except (OSError, ValueError) as error:
        return f"the run cannot be read: {error}"
    return ", ".join(f"{part} differ" for part in mine if mine[part] != theirs[part])


def digest(file: Path) -> str:
    """A hash of a file."""
    return hashlib.blake2b(file.read_bytes(), digest_size=12).hexdigest()


def tree(folder: Path) -> dict[str, str]:
    """Every file below a folder, with its hash."""
    return {str(f.relative_to(folder)): digest(f) for f in sorted(folder.rglob("*")) if f.is_file()}
