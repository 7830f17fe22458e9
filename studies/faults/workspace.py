"""The data, model and reference runs that the scenarios work with."""

from __future__ import annotations

import contextlib
import hashlib
import io
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

from studies.faults.injection import after_rename, kill_self
from studies.faults.process import Exit, run_command
from tracer.cli.app import main

T = TypeVar("T")

STEPS = 8
MODEL = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": 28, "layers": 1, "width": 32, "head_width": 16, "patch_size": 14},
    "text_cfg": {"context_length": 16, "vocab_size": 49408, "width": 4, "heads": 1, "layers": 1},
}
RECIPE = '''
from tracer.runs.experiment import Experiment
from tracer.sweep import product

def tiny():
    """Two seeds."""
    base = Experiment(data={data!r}, held_out={data!r}, model={model!r}, pretrained="none", templates="name",
                      steps=3, batch=8, lr=1e-3, augment="none", precision="fp32")
    return product(base, seed=range(2))
'''


@dataclass(frozen=True)
class Workspace:
    """A folder with 24 images, a tiny model, a sweep recipe and reference runs; scenarios work in subfolders."""

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
        for image in (self.photos / "dark" / "00.png", self.photos / "bright" / "00.png"):
            (self.few / image.parent.name).mkdir(parents=True)
            shutil.copy(image, self.few / image.parent.name)
        rows = [
            f"photos/{label}/{i:02d}.png,a {label} one of number {i}\n"
            for label in ("dark", "bright")
            for i in range(8)
        ]
        self.pairs.write_text("".join(["image,caption\n", *rows]))
        self.model.write_text(json.dumps(MODEL))
        self.recipe.write_text(RECIPE.format(data=str(self.photos), model=str(self.model)))

    @property
    def photos(self) -> Path:
        return self.folder / "photos"

    @property
    def few(self) -> Path:
        """Two images, to be retained: without any, every run would name all emoji, which takes longer than training."""
        return self.folder / "few"

    @property
    def pairs(self) -> Path:
        """A table of images with captions."""
        return self.folder / "pairs.csv"

    @property
    def model(self) -> Path:
        return self.folder / "tiny.json"

    @property
    def recipe(self) -> Path:
        return self.folder / "recipe.py"

    def count(self, quick: int, full: int) -> int:
        """How many inputs to try."""
        return quick if self.quick else full

    def sample(self, quick: int, choices: Iterable[T]) -> list[T]:
        """All choices; with --quick, `quick` of them at random."""
        choices = list(choices)
        return self.rng.sample(choices, quick) if self.quick else choices

    def new_path(self, name: str) -> Path:
        """A path for a scenario at which nothing exists; what was there is removed."""
        path = self.folder / "trials" / name
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def copy(self, source: Path, name: str) -> Path:
        """A copy of a folder that a scenario may damage."""
        path = self.new_path(name)
        shutil.copytree(source, path)
        return path

    def train_arguments(self, out: Path, *, data: Path | str | None = None, **flags: object) -> list[str]:
        """The arguments of a short `tracer train`."""
        settings = {
            "model": self.model,
            "pretrained": "none",
            "templates": "name",
            "device": "cpu",
            "steps": STEPS,
            "batch": 8,
            "lr": 1e-3,
            "save_every": 2,
            "workers": 0,
            "retain": self.few,
            **flags,
        }
        words = [
            word
            for name, value in settings.items()
            for word in (f"--{name.replace('_', '-')}", str(value))
            if value is not None
        ]
        return ["train", "--data", str(data or self.photos), *words, "--out", str(out)]

    def train_or_resume(self, out: Path, **how: Any) -> Exit:
        """Start the run in `out`, or resume it if it was started."""
        resume = ["resume", str(out), "--save-every", "2", "--workers", "0", "--device", "cpu"]
        started = (out / "experiment.json").exists()
        return run_command(resume if started else self.train_arguments(out), **how)

    @cached_property
    def finished_run(self) -> Path:
        """A finished run in which no fault was injected."""
        out = self.new_path("finished")
        result = self.train_or_resume(out)
        assert result.code == 0, result.tail
        return out

    @cached_property
    def stopped_run(self) -> Path:
        """A run that was killed after its third checkpoint was written and before the first one was removed."""
        out = self.new_path("stopped")
        result = self.train_or_resume(out, inject=lambda: after_rename(f"step-{STEPS - 2:09d}", kill_self))
        assert result.killed, result.tail
        return out


def warm_up(folder: Path) -> None:
    """Train and resume in this process: what it then has in its caches, forked processes have from their start."""
    workspace, out = Workspace(folder, Random(0), quick=True), folder / "run"
    with contextlib.redirect_stdout(io.StringIO()):
        assert main(workspace.train_arguments(out)) == 0
        assert main(["resume", str(out), "--device", "cpu"]) == 0


def contents(run: Path) -> dict[str, Any]:
    """Hashes of the weights, the result and the log of a finished run, without warnings and times.

    Evaluations during training are apart, by step: how often there is one depends on the time it takes.
    """
    weights = {file.name: file_hash(file) for file in sorted((run / "weights").glob("*.safetensors"))}
    entries = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    log = [entry for entry in entries if entry["kind"] not in ("warning", "time", "held_out")]
    held_out = {entry["step"]: entry for entry in entries if entry["kind"] == "held_out"}
    result = json.loads((run / "result.json").read_text())
    return {"weights": weights, "log": log, "held_out": held_out, "result": result}


def difference(run: Path, other: Path) -> str:
    """What differs between two finished runs; empty if they are the same to the bit."""
    try:
        mine, theirs = contents(run), contents(other)
    except (OSError, ValueError) as error:
        return f"the run cannot be read: {error}"
    common = mine["held_out"].keys() & theirs["held_out"].keys()
    for each in (mine, theirs):
        each["held_out"] = {step: each["held_out"][step] for step in common}
    return ", ".join(f"{part} differ" for part in mine if mine[part] != theirs[part])


def file_hash(file: Path) -> str:
    """A hash of a file's bytes."""
    return hashlib.blake2b(file.read_bytes(), digest_size=12).hexdigest()


def file_hashes(folder: Path) -> dict[str, str]:
    """Every file below a folder, with its hash."""
    return {str(f.relative_to(folder)): file_hash(f) for f in sorted(folder.rglob("*")) if f.is_file()}
