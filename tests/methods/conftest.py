"""A data set of three dozen digits: enough for every method to take a step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tracer.data.embedded.digits import digits
from tracer.runs.experiment import Experiment


@pytest.fixture(scope="session")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve images each of three digits, as a NumPy archive."""
    examples = digits("train")
    chosen = np.concatenate([np.flatnonzero(examples.labels == digit)[:12] for digit in range(3)])
    path = tmp_path_factory.mktemp("few") / "few.npz"
    images = np.stack([np.asarray(examples.images[int(i)]) for i in chosen])
    np.savez(path, images=images, labels=examples.labels[chosen])
    return path


@pytest.fixture(scope="session")
def settings(few: Path, minute_model: Path) -> dict[str, object]:
    """Three steps of a very small model."""
    return {
        "data": str(few),
        "templates": "the digit {}",
        "model": str(minute_model),
        "pretrained": "none",
        "steps": 3,
        "batch": 8,
        "lr": 1e-3,
        "augment": "none",
        "precision": "fp32",
    }


@pytest.fixture(scope="session")
def experiment(settings: dict[str, object], few: Path):
    """Makes an experiment of a method's name; one that learns from anchors is given some."""
    from tracer.methods.base import options

    def make(name: str, **asked: object) -> Experiment:
        if "anchors" in {option.name for option in options(name)}:
            asked = {"anchors": str(few), **asked}
        defaults = {option.name: option.default for option in options(name)}
        return Experiment(method=name, options={**defaults, **asked}, **settings)

    return make
