"""Trials that several processes share, and data that leave nothing to search for."""

from __future__ import annotations

import shlex
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from tracer.api.run import Machine
from tracer.core.errors import NonFinite, NotAdaptable, UserError
from tracer.data.examples import Examples, Pixels
from tracer.fitting import search as module
from tracer.fitting.budget import Speed
from tracer.fitting.candidates import Candidate, without_rate
from tracer.fitting.choice import Point
from tracer.fitting.fit import _schedule
from tracer.fitting.parts import Parts, check_known
from tracer.fitting.result import Fitted, _earlier
from tracer.fitting.search import Search
from tracer.fitting.trial import Trial, write_state
from tracer.runs.experiment import Experiment
from tracer.runs.run import Run
from tracer.storage.lock import lock
from tracer.sweep.worker import FAILED


class Elsewhere:
    """A trial that another process works on, and that ends after this one has looked at it `looks` times."""

    def __init__(self, name: str, looks: int) -> None:
        self.name, self.looks, self.failed = name, looks, False

    @property
    def ended(self) -> bool:
        self.looks -= 1
        return self.looks < 0

    candidate = without_rate(labelled=False)[0]

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


def test_a_trial_that_is_better_within_noise_does_not_hide_why_it_is_not_the_best(tmp_path: Path) -> None:
    absent: Any = None
    search = Search(absent, absent, tmp_path, absent, lambda line: None)
    search.before = Point("pretrained", 0.0, [True, False] * 10, {"names": [True] * 20})
    noise = Point("one", 1.0, [True] * 11 + [False] * 9, {"names": [True] * 19 + [False]})
    search.trials, search.paths = {"one": cast(Any, None)}, {"one": [noise]}
    assert search._standing(noise) == "nothing is better than pretrained (50.0 %) beyond noise yet"
    sure = Point("one", 1.0, [True] * 20, {"names": [True] * 20})
    search.paths = {"one": [sure]}
    assert search._standing(sure) == "best so far"  # and not its numbers again
    search.paths = {"one": [sure._replace(alpha=0.5), noise]}
    assert search._standing(noise) == "best so far if mixed at α = 0.5 (100.0 %, keeps 100.0 %)"


def test_what_the_pretrained_model_cannot_do_at_all_cannot_be_kept() -> None:
    check_known({"digits": 0.2})
    with pytest.raises(UserError, match="--retain letters: the pretrained model is right on none"):
        check_known({"digits": 0.2, "letters": 0.0})


@pytest.mark.parametrize(
    ("error", "of_the_trial"),
    [
        (NotAdaptable("nothing to adapt"), True),
        (NonFinite("the loss is not finite"), True),
        (UserError("No space left on device. When that is corrected, go on with: tracer resume x"), False),
        (OSError(28, "No space left on device"), False),
        (UserError("another process is working on x"), False),
    ],
)
@pytest.mark.parametrize("moment", ["run", "score"])
def test_only_what_lies_in_the_trial_leaves_it_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, of_the_trial: bool, moment: str
) -> None:
    """A full disk would be the trial's failure for ever, and another model would be chosen."""

    def refused(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("tracer.fitting.trial.run", lambda *_, **__: None)
    monkeypatch.setattr(f"tracer.fitting.trial.{moment}", refused)
    absent: Any = None
    trial = Trial(Candidate("tracer", adapter="lora"), Experiment(data="photos", steps=1), tmp_path)
    with nullcontext() if of_the_trial else pytest.raises(type(error)):
        trial.carry_out(absent, Machine(), lambda report: None)
    assert trial.failed == trial.ended == of_the_trial
    assert not of_the_trial or trial.failure == str(error)


DAMAGE = {
    "empty": b"",
    "cut": b'{"seconds": 1.0, "po',
    "a list": b"[]",
    "deep": b"[" * 100_000,
    "no UTF-8": b"\xff\xfe",
    "zeros": bytes(40),
    "edited": None,
    "without a checksum": b'{"seconds": "x", "points": 7, "budget": "2-runs", "full": 10, "steps": 1, "looks": 0}',
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damaged_files_of_a_search_are_made_again_or_named(tmp_path: Path, kind: str) -> None:
    """The scores of a trial and the plan are made again; the count of looks at the test images cannot be."""
    absent: Any = None
    trial = Trial(Candidate("ft"), absent, tmp_path / "trials" / "a")
    scores, schedule, result = trial.folder / "path.json", tmp_path / "plan.json", tmp_path / "fit.json"
    write_state(scores, {"seconds": 1.0, "points": [{"alpha": 1.0, "hits": "0", "kept": {}}]})
    whole = _schedule("2-runs", tmp_path, Speed(0.0, 0.0), 10, True)
    write_state(schedule, {"budget": "2-runs", "full": 10, **whole._asdict()})
    write_state(result, {"run": "a", "looks": 1})
    assert trial.ended
    assert _earlier(tmp_path)["looks"] == 1
    for file in (scores, schedule, result):
        edited = file.read_bytes().replace(b"1", b"2", 1)
        file.write_bytes(edited if DAMAGE[kind] is None else DAMAGE[kind])
    assert not trial.ended
    assert _schedule("2-runs", tmp_path, Speed(0.0, 0.0), 10, True) == whole
    with pytest.raises(UserError, match=r"fit\.json is damaged: restore it, or delete it"):
        _earlier(tmp_path)


def test_a_failure_that_is_no_text_is_shown_as_far_as_it_goes(tmp_path: Path) -> None:
    absent: Any = None
    (tmp_path / FAILED).write_bytes(b"diverged \xff\n")
    assert Trial(Candidate("ft"), absent, tmp_path).failure == "diverged \ufffd"


def test_the_next_command_can_be_pasted_whatever_the_folder_is_called(tmp_path: Path) -> None:
    absent: Any = None
    run = Run(tmp_path / "two words", "wise-0.5")
    line = Fitted(run, 0.5, "", absent, "", (), tmp_path / "two words").next
    assert shlex.split(line)[2] == str(tmp_path / "two words" / "best")


def test_a_probe_is_sure_to_keep_only_what_its_head_does_not_answer(tmp_path: Path) -> None:
    """On retained data with the classes of the task the new head answers, and can lose what the old one knew."""
    absent: Any = None
    trial = Trial(without_rate(labelled=True)[1], absent, tmp_path)
    point = {"alpha": 1.0, "hits": "11", "kept": {"digits": "10"}}
    write_state(tmp_path / "path.json", {"points": [point]})

    def parts(*classes: str) -> Parts:
        return Parts(*(cast(Any, each) for each in ((sized(classes),), sized(("cat", "dog")), ())))

    def sized(classes: tuple[str, ...]) -> Examples:
        rows = np.zeros((2, 4, 4, 3), np.uint8)
        return Examples("digits", Pixels(rows), ["a", "b"], np.zeros(2, np.int64), [()] * 2, classes)

    assert [each.frozen for each in trial.path(parts("one", "two"))] == [True]
    assert [each.frozen for each in trial.path(parts("cat", "dog"))] == [False]
