"""A setting of another type than its own is refused in a sentence before anything is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest

import tracer
from tracer.core.errors import UserError
from tracer.models.student import load
from tracer.runs.experiment import Experiment

TEXT = (str, str | None, dict[str, Any])  # paths, names and options, which have checks of their own
SETTINGS = sorted(name for name, hint in get_type_hints(Experiment).items() if hint not in TEXT)


@pytest.mark.parametrize("name", sorted({*SETTINGS} - {"retain"}))
@pytest.mark.parametrize("value", ["yes", "4", [4], {}])
def test_another_type_is_refused_before_anything_is_written(name: str, value: Any, tmp_path: Path) -> None:
    model = load("tiny-28", seed=0).clip  # its weights would be written beside the run
    with pytest.raises(UserError, match=rf"{name}.*: (expected|choose from|did you mean)") as refusal:
        tracer.finetune("digits", model=(model, "tiny-28"), out=tmp_path / "run", **{name: value})
    assert str(value) in str(refusal.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"chunk": 4.5}, "chunk 4.5: expected a whole number or None"),
        ({"checkpointing": "yes"}, "checkpointing 'yes': expected True or False"),
        ({"lr": None}, "lr None: expected a number"),
        ({"retain": "digits"}, "retain 'digits': expected a list of text"),
        ({"templates": Path("mine.txt")}, "mine.txt'): expected text or None"),
        ({"seed": 2**70}, f"seed {2**70}: expected a number below 2^64"),
        ({"batchnorm": "no"}, "unknown batchnorm 'no': choose from: auto, keep, train"),
    ],
)
def test_the_sentence_names_what_is_valid(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as refusal:
        Experiment(data="digits", **settings)
    assert str(refusal.value).endswith(message)


def test_whole_numbers_and_those_of_numpy_are_numbers() -> None:
    settings: dict[str, Any] = {"lr": 1, "epochs": np.float32(2), "seed": np.int64(3), "strict": np.True_}
    experiment = Experiment(data="digits", **settings)
    assert experiment.to_json() == Experiment(data="digits", lr=1, epochs=2.0, seed=3, strict=True).to_json()
    assert type(experiment.seed) is int
