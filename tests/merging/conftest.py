"""Small finished runs to merge, made once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tracer.data.embedded.digits import digits
from tracer.parallel import World
from tracer.runs.experiment import Experiment
from tracer.runs.plan import plan
from tracer.runs.run import Run
from tracer.training.loop import Training

Finished = Callable[..., Path]


@pytest.fixture(scope="session")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve images each of three digits."""
    return archive(tmp_path_factory.mktemp("few") / "few.npz", range(3))


def archive(path: Path, kinds: range) -> Path:
    examples = digits("train")
    chosen = np.concatenate([np.flatnonzero(examples.labels == digit)[:12] for digit in kinds])
    images = np.stack([np.asarray(examples.images[int(i)]) for i in chosen])
    np.savez(path, images=images, labels=examples.labels[chosen])
    return path


@pytest.fixture(scope="session")
def finished(few: Path, minute_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """The folder of a finished run of four steps; asked for twice, it is made once."""
    made: dict[str, Path] = {}

    def run(name: str, options: dict[str, object] | None = None, **settings: object) -> Path:
        key = repr((name, options, settings))
        if key not in made:
            model = {"model": str(minute_model), "pretrained": "none"}
            data = {"data": str(few), "templates": "the digit {}"}
            short = {"steps": 4, "batch": 8, "lr": 1e-3, "augment": "none", "precision": "fp32"}
            asked = Experiment(method=name, options=options or {}, **{**data, **model, **short, **settings})
            drawn = plan(asked)
            folder = tmp_path_factory.mktemp(name) / "run"
            list(Training(drawn, Run.create(drawn, folder), World("cpu", "fp32")))
            made[key] = folder
        return made[key]

    return run
