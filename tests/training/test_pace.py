"""Checkpoints and evaluations follow the time they take, processes agree on them, and weights do not depend on them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tracer.data.examples import Examples, Pixels
from tracer.evaluation.measured import watched
from tracer.models.student import read_weights
from tracer.parallel import World
from tracer.runs.experiment import Experiment
from tracer.runs.plan import Plan, plan
from tracer.runs.record import read
from tracer.runs.run import Run
from tracer.training.loop import Training
from tracer.training.pace import ACTIVITIES, Clock, Pace
from tracer.training.watch import few


class Pair(World):
    """One of two processes; what the other one says is given."""

    size = 2

    def __init__(self, rank: int, other: dict[str, Any]) -> None:
        super().__init__("cpu", "fp32")
        self.rank, self.other = rank, other

    def agree(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        return [message, self.other] if self.first else [self.other, message]


def simulate(
    steps: int, *, step: float, save: float, evaluation: float, **every: int
) -> tuple[list[int], list[int], Clock]:
    """The steps of checkpoints and of evaluations in a run whose parts take these seconds."""
    clock = Clock()
    pace = Pace(steps, World("cpu", "fp32"), clock, every.get("save_every"), every.get("evaluate_every"))
    saves, evaluations = [], []
    clock.seconds["evaluating"] += evaluation  # of the pretrained model
    pace.evaluated(evaluation)
    for number in range(1, steps + 1):
        clock.seconds["steps"] += step
        decision = pace.after(number, number == steps, None)
        if decision.evaluate:
            evaluations.append(number)
            clock.seconds["evaluating"] += evaluation
            pace.evaluated(evaluation)
        if decision.save:
            saves.append(number)
            clock.seconds["saving"] += save
            pace.saved(save)
    return saves, evaluations, clock


def test_a_short_run_saves_once_at_its_end() -> None:
    assert simulate(30, step=1.5, save=7.0, evaluation=0.1)[0] == [30]


def test_fast_checkpoints_come_every_two_minutes() -> None:
    saves, _, _ = simulate(1000, step=1.0, save=0.5, evaluation=0.1)
    assert saves == [*range(120, 1000, 120), 1000]


def test_slow_checkpoints_take_a_fiftieth_of_the_time() -> None:
    saves, _, clock = simulate(10_000, step=1.0, save=60.0, evaluation=0.1)
    assert saves[:3] == [120, 3120, 6120]
    assert clock.seconds["saving"] <= 0.02 * clock.seconds["steps"] + 2 * 60


@pytest.mark.parametrize("steps", [4, 10, 14, 100, 12_345])
def test_cheap_evaluations_come_ten_times_and_dear_ones_twice(steps: int) -> None:
    _, cheap, _ = simulate(steps, step=1.0, save=1.0, evaluation=0.0)
    _, dear, _ = simulate(steps, step=1.0, save=1.0, evaluation=1e6)
    assert len(cheap) == min(steps, 10)
    assert len(dear) == 2
    assert cheap[-1] == dear[-1] == steps


def test_evaluations_between_take_a_twentieth_of_the_time() -> None:
    _, evaluations, clock = simulate(1000, step=1.0, save=1.0, evaluation=8.0)
    assert 2 < len(evaluations) < 10
    assert clock.seconds["evaluating"] <= 0.05 * clock.seconds["steps"] + 8


def test_given_numbers_of_steps_are_followed() -> None:
    saves, evaluations, _ = simulate(10, step=99.0, save=1.0, evaluation=1.0, save_every=4, evaluate_every=3)
    assert saves == [4, 8, 10]
    assert evaluations == [3, 6, 9, 10]


def test_all_processes_do_what_the_first_one_decides() -> None:
    late, early = Clock(), Clock()
    late.seconds["steps"] = 1000.0
    saving = {"signal": 0, "save": True, "evaluate": False, "stride": 1}
    waiting = {**saving, "save": False}
    assert Pace(500, Pair(0, waiting), late, None, None).after(10, False, None).save
    assert Pace(500, Pair(1, saving), early, None, None).after(10, False, None).save
    assert not Pace(500, Pair(1, waiting), late, None, None).after(10, False, None).save
    stopping = Pace(500, Pair(0, {**waiting, "signal": 15}), early, None, None).after(10, False, None)
    assert stopping.signal == 15  # that only the other one has received
    assert stopping.save


def test_slow_processes_agree_at_every_step_and_fast_ones_every_tenth() -> None:
    """So that a signal is answered within about a second."""
    for seconds, expected in ((30.0, 1), (0.3, 3), (0.001, 10)):
        clock = Clock()
        pace = Pace(10_000, Pair(0, {"signal": 0}), clock, None, None)
        clock.seconds["steps"] += seconds
        pace.after(1, False, None)
        assert pace._agreement - pace.taken == expected


def settled() -> Plan:
    return plan(
        Experiment(
            data="digits",
            method="flyp",
            model="tiny-28",
            pretrained="none",
            templates="name",
            steps=4,
            batch=8,
            lr=1e-3,
        )
    )


def test_weights_do_not_depend_on_when_a_run_saves_and_evaluates(tmp_path: Path) -> None:
    made, weights = settled(), []
    made = Plan(**{**vars(made), "held_out": made.held_out.take(range(8))})
    for name, every in (("seldom", 4), ("often", 1)):
        run = Run.create(made, tmp_path / name)
        reports = list(Training(made, run, World("cpu", "fp32"), save_every=every, evaluate_every=every))
        weights.append(read_weights(run.weights_file("result")))
        (time,) = read(run.recorder.path, "time")
        assert time.keys() >= set(ACTIVITIES)
        assert reports[-1].seconds is not None
        assert reports[-1].seconds["steps"] > 0
        assert "steps" in (reports[-1].message or "")
    assert all(weights[0][name].equal(weights[1][name]) for name in weights[0])


def test_few_prompts_watch_a_run_and_all_of_them_if_classes_arefew() -> None:
    templates = [f"{i} {{}}" for i in range(80)]
    assert few(templates, 2) == templates
    assert len(few(templates, 1000)) == 8
    assert len(set(few(templates, 25))) == 10


def test_a_short_run_is_watched_by_a_part_of_the_held_out_images() -> None:
    labels = np.repeat(np.arange(10), 28)  # sorted by class
    blank = Pixels(np.zeros((280, 1, 1, 3), np.uint8))
    ids, names = [str(i) for i in range(280)], tuple("abcdefghij")
    held_out = Examples("x", blank, ids, labels, [()] * 280, names)
    assert len(watched(held_out, 10**5)) == 280
    some = watched(held_out, 1600)
    assert len(some) == 64
    assert set(labels[some].tolist()) == set(range(10))
    unlabelled = replace(held_out, labels=np.full(280, -1), captions=[("text",)] * 280, classes=())
    assert len(watched(unlabelled, 1600)) == 280  # accuracy among captions depends on their number
