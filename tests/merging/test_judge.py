"""A judge looks at each image once for each weights, and says what two looks would."""

from __future__ import annotations

from pathlib import Path

from counting import counted
from merge.conftest import Finished

from tracer.core.metrics import agreement
from tracer.evaluation.summary import KNOWN_PROMPT, looked_at
from tracer.merging.family import family
from tracer.merging.judge import Judge
from tracer.models.open_clip_compat import open_clip
from tracer.parallel import World
from tracer.runs.run import Run


def test_held_out_images_are_embedded_once_for_each_weights(finished: Finished, few: Path) -> None:
    kin = family([Run.open(finished("flyp", held_out=str(few)))])
    judge, (end,) = Judge(kin, World("cpu", "fp32")), kin.ends.values()
    with counted(kin.student) as images:
        verdict = judge(end)
    assert sum(images) == len(judge.held_out) + sum(map(len, judge.retain))

    views = []
    for weights in (kin.start, end):  # each question in a pass of its own
        scorer = judge.scorer(weights)
        some = judge.held_out.take(looked_at(len(judge.held_out)))
        views.append(scorer.predict(some, KNOWN_PROMPT, tuple(open_clip.IMAGENET_CLASSNAMES)).logits)
        accuracy = scorer.predict(judge.held_out, kin.plan.templates).accuracy
    assert verdict.accuracy == accuracy
    assert verdict.agreement == agreement(*views)
