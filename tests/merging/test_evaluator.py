"""An evaluator embeds each image once per set of weights and gives the scores of separate passes."""

from __future__ import annotations

from pathlib import Path

from counting import counted
from merging.conftest import Finished

from tracer.core.metrics import agreement
from tracer.evaluation import measured
from tracer.evaluation.measured import KNOWN_PROMPT, compared_indices
from tracer.merging.evaluator import Evaluator
from tracer.merging.run_group import run_group
from tracer.parallel import World
from tracer.runs.run import Run


def test_held_out_images_are_embedded_once_for_each_weights(finished: Finished, few: Path) -> None:
    group = run_group([Run.open(finished("flyp", held_out=str(few)))])
    evaluator, (end,) = Evaluator(group, World("cpu", "fp32")), group.ends.values()
    with counted(group.student) as images:
        scores = evaluator(end)
    assert sum(images) == len(evaluator.held_out) + sum(map(len, evaluator.retain))

    views = []
    for weights in (group.start, end):  # each score in a pass of its own
        scorer = evaluator.scorer(weights)
        some = evaluator.held_out.take(compared_indices(len(evaluator.held_out)))
        views.append(scorer.predict(some, KNOWN_PROMPT, measured.known_names()).logits)
        accuracy = scorer.predict(evaluator.held_out, group.plan.templates).accuracy
    assert scores.accuracy == accuracy
    assert scores.agreement == agreement(*views)


def test_images_of_new_statistics_come_in_equal_batches(finished: Finished, few: Path, monkeypatch) -> None:
    """Each batch counts equally in the statistics, so a last one of a few images would count too much."""
    group = run_group([Run.open(finished("flyp", held_out=str(few)))])
    evaluator = Evaluator.__new__(Evaluator)  # without scoring anything
    evaluator.group, evaluator.world = group, World("cpu", "fp32")
    count = len(group.plan.train)
    monkeypatch.setattr("tracer.merging.evaluator.BATCH", count - 1)
    assert sorted(len(batch) for batch in evaluator._images()) == [count // 2, count - count // 2]
