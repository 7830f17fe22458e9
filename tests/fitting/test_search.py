"""Trials that several processes share, and data that leave nothing to search for."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from tracer.api.run import Machine
from tracer.core.errors import UserError
from tracer.data.examples import Examples, Pixels
from tracer.fitting import search as module
from tracer.fitting.candidates import Candidate, without_rate
from tracer.fitting.choice import Point
from tracer.fitting.parts import Parts, check_known
from tracer.fitting.search import Search
from tracer.fitting.trial import Trial
from tracer.runs.experiment import Experiment
from tracer.storage.lock import lock


class Elsewhere:
    """A trial that another process works on, and that ends after this one has looked at it `looks` times."""

    def __init__(self, name: str, looks: int) -> None:
        self.name, self.looks, self.failed = name, looks, False

    @property
    def ended(self) -> bool:
        self.looks -= 1
        return self.looks < 0

    def path(self, parts: object) -> list[Point]:
        return [Point(self.name, 1.0, [True], {"names": [True]})]


@pytest.mark.parametrize("looks", range(5))
def test_a_trial_that_ends_elsewhere_is_read_whenever_that_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks: int
) -> None:
    monkeypatch.setattr(module, "PAUSE", 0.0)
    monkeypatch.setattr(Search, "_say", lambda self, trial: None)
    absent: Any = None
    search = Search(absent, absent, tmp_path, absent, lambda line: None)
    trial = Elsewhere("one", looks)
    with lock(tmp_path / ".locks" / trial.name):
        search.complete([cast(Any, trial)])
    assert list(search.paths) == ["one"]


def test_what_the_pretrained_model_cannot_do_at_all_cannot_be_kept() -> None:
    check_known({"digits": 0.2})
    with pytest.raises(UserError, match="--retain letters: the pretrained model is right on none"):
        check_known({"digits": 0.2, "letters": 0.0})


@pytest.mark.parametrize("adapter", ["lora", None])
def test_an_adapter_that_the_model_cannot_have_does_not_end_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, adapter: str | None
) -> None:
    """Towers of convolutions have no linear layer; any other refusal is that of all trials."""

    def refused(*_: object, **__: object) -> None:
        raise UserError("no linear layer to adapt")

    monkeypatch.setattr("tracer.fitting.trial.run", refused)
    absent: Any = None
    trial = Trial(Candidate("tracer", adapter=adapter), Experiment(data="photos", steps=1), tmp_path)
    with nullcontext() if adapter else pytest.raises(UserError):
        trial.carry_out(absent, Machine(), lambda report: None)
        assert trial.failed
        assert trial.failure == "no linear layer to adapt"
    assert trial.failed == bool(adapter)


def test_a_probe_is_sure_to_keep_only_what_its_head_does_not_answer(tmp_path: Path) -> None:
    """On retained data with the classes of the task the new head answers, and can lose what the old one knew."""
    absent: Any = None
    trial = Trial(without_rate(labelled=True)[1], absent, tmp_path)
    point = {"alpha": 1.0, "hits": "11", "kept": {"digits": "10"}}
    (tmp_path / "path.json").write_text(json.dumps({"points": [point]}))

    def parts(*classes: str) -> Parts:
        return Parts(*(cast(Any, each) for each in ((sized(classes),), sized(("cat", "dog")), ())))

    def sized(classes: tuple[str, ...]) -> Examples:
        rows = np.zeros((2, 4, 4, 3), np.uint8)
        return Examples("digits", Pixels(rows), ["a", "b"], np.zeros(2, np.int64), [()] * 2, classes)

    assert [each.frozen for each in trial.path(parts("one", "two"))] == [True]
    assert [each.frozen for each in trial.path(parts("cat", "dog"))] == [False]
