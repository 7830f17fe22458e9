"""Building a zero-shot head (classes × prompts through the text tower), ours against open_clip's."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from studies.bench.timing import Timer, Times
from tracer.models.open_clip_compat import open_clip
from tracer.models.prompts import render, templates
from tracer.models.student import Student, load
from tracer.models.zero_shot import zero_shot


def heads(model: str, classes: Sequence[str], timer: Timer) -> tuple[Times, float]:
    """Times, and the largest difference between the two heads."""
    student = load(model).eval()
    prompts = templates("openai")
    rows: dict[str, torch.Tensor] = {}
    times = timer(
        {
            "open_clip's head": lambda: rows.update(theirs=theirs(student, classes, prompts)),
            "our head": lambda: rows.update(ours=zero_shot(student, classes, prompts)),
        },
        warmup=0,
    )
    return times, float((rows["ours"] - rows["theirs"]).abs().max())


@torch.no_grad()
def theirs(student: Student, classes: Sequence[str], prompts: Sequence[str]) -> torch.Tensor:
    """open_clip's classifier, one row for each class."""
    return open_clip.build_zero_shot_classifier(
        student.clip,
        tokenizer=student.tokeniser.tokeniser,
        classnames=list(classes),
        templates=[lambda name, prompt=prompt: render(prompt, name) for prompt in prompts],
        num_classes_per_batch=10,
    ).T
