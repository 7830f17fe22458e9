"""Class names that are numbers themselves: a label may then be a name, or a place in the list of names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tracer.core.errors import UserError
from tracer.data.classes import classes
from tracer.data.formats.memory import from_object
from tracer.data.sources import load

NUMERIC = tuple(
    sorted(map(str, range(12)))
)  # 0, 1, 10, 11, 2, … as torchvision lists folders called by numbers


def test_numbers_from_python_count_the_names_even_if_these_are_numbers() -> None:
    labels = np.arange(12)
    cases: list[tuple[object, tuple[str, ...]]] = [
        ((np.zeros((12, 4, 4, 3), np.uint8), labels), NUMERIC),
        ([(np.full((4, 4, 3), i, np.uint8), i) for i in range(12)], NUMERIC),
        ({"image": np.zeros((3, 4, 4, 3), np.uint8), "label": np.arange(3)}, ("1", "2", "3")),
    ]
    for data, names in cases:
        examples = from_object(data, classes=list(names))
        assert examples.classes == names
        assert examples.labels.tolist() == list(range(len(names)))


def test_one_hot_rows_count_the_names_even_if_these_are_numbers(tmp_path: Path) -> None:
    file = tmp_path / "signs.npz"
    np.savez(file, images=np.zeros((12, 4, 4, 3), np.uint8), labels=np.eye(12), classes=np.array(NUMERIC))
    assert load(file).labels.tolist() == list(range(12))


def test_numbers_that_may_be_names_or_places_in_a_list_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "signs.npz"
    np.savez(file, images=np.zeros((12, 4, 4, 3), np.uint8), labels=np.arange(12), classes=np.array(NUMERIC))
    for refused in (lambda: classes(map(str, range(12)), NUMERIC), lambda: load(file)):
        with pytest.raises(
            UserError, match="label 2 may be the class '2' or, counted from 0, the class '10'"
        ):
            refused()
    assert classes(["1", "2"], ["1", "2", "3"]).labels(["1", "2"]).tolist() == [0, 1], "sorted: by spelling"
