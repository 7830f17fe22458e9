"""Measure a finished run: its answers on every test set, its teacher–student gap and the CKA of its layers.

The measurements are kept in one small file in the run, so that nothing is measured twice.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tracer.analysis.layers import layer_similarity
from tracer.core.batch import Scene
from tracer.core.errors import UserError
from tracer.core.metrics import ece
from tracer.core.objective import Objective
from tracer.core.weights import Weights
from tracer.data.embedded.emojishift import emoji_kinds
from tracer.data.examples import Examples
from tracer.data.loader import Batches
from tracer.data.transforms import Transform
from tracer.evaluation.predict import Scorer
from tracer.evaluation.suites.corruptions import corrupt
from tracer.evaluation.suites.emojishift import emojishift
from tracer.evaluation.suites.shift import Opened, Suite
from tracer.measure.answers import Predictions
from tracer.merging.run_group import run_group
from tracer.merging.wise import interpolate
from tracer.methods.presets import composite
from tracer.models.student import initialise_from, read_weights
from tracer.parallel import World
from tracer.runs import record
from tracer.runs.run import Run
from tracer.storage.atomic import write_text

FILE = "measures.json"
CORRUPTIONS = "all:3"  # every corruption of the trained style's test images, at severity 3


def measure(
    run: Run, style: str, fold: int, alphas: Sequence[float], cpu_seconds: float | None
) -> dict[str, Any]:
    """Score the run at each α between the pretrained model and the run; α that were scored before are read."""
    file, tests = run.folder / FILE, suite(style, fold)
    known = json.loads(file.read_text()) if file.exists() else unscored(run, style, fold)
    measures: dict[str, Any] = {"edition": edition(style, fold), **validation(run, cpu_seconds), **known}
    complete = {alpha: scores for alpha, scores in measures["scores"].items() if not lacking(scores, tests)}
    if measures["edition"] != edition(style, fold):
        measures["edition"], complete = edition(style, fold), {}
    if absent := [alpha for alpha in alphas if f"{alpha:g}" not in complete]:
        measures["scores"] = complete | {f"{alpha:g}": scores for alpha, scores in scored(run, tests, absent)}
        write_text(file, json.dumps(measures))
    return measures


def unscored(run: Run, style: str, fold: int) -> dict[str, Any]:
    """What is measured without test sets."""
    examples = emoji_kinds(style, fold, "val")
    between = gap(run.folder) | {"distillation": distillation(run, examples)}
    return {"gap": between, "layers": layers(run, examples), "scores": {}}


def scored(run: Run, tests: Suite, alphas: Sequence[float]) -> Iterator[tuple[float, dict[str, Any]]]:
    """The answers on every test set, at each α."""
    opened, student = tests.open(), run.student("pretrained")
    for alpha, weights in line(run, alphas):
        initialise_from(student, weights)
        # No loader processes: images are small and in memory, and other runs use the other cores.
        scorer = Scorer(student, World("cpu", "fp32"), run.description["classes"], workers=0)
        yield alpha, {each.shift.name: summary(scorer, each) for each in opened}


@cache
def suite(style: str, fold: int) -> Suite:
    """The test sets of a run: every style, the names, and the trained style corrupted."""
    return corrupt(emojishift(style, fold), CORRUPTIONS)


@cache
def edition(style: str, fold: int) -> str:
    """A hash of all test sets in their order; measurements of another edition are discarded."""
    sets = [(each.shift.name, each.examples.fingerprint) for each in suite(style, fold).open()]
    return blake2b(repr(sets).encode(), digest_size=8).hexdigest()


def lacking(scores: Mapping[str, Any], tests: Suite) -> list[str]:
    """The test sets that `scores` lacks."""
    return [each.name for each in tests.shifts if each.name not in scores]


def validation(run: Run, cpu_seconds: float | None) -> dict[str, Any]:
    """The id, validation accuracy, CPU time and commit of a run."""
    result = run.result
    return {
        "run": run.description["id"],
        "validation": result["after"]["accuracy"],
        "cpu_seconds": cpu_seconds,
        "commit": run.description.get("git"),
    }


def line(run: Run, alphas: Sequence[float]) -> Iterator[tuple[float, Weights]]:
    """The weights at each α between the pretrained model and the run; only α = 1 where the two cannot be mixed."""
    end = read_weights(run.weights_file("result"))
    try:
        start = run_group([run]).start if min(alphas) < 1 else end
    except UserError:  # a head that cannot be mixed with the zero-shot classifier
        alphas, start = [alpha for alpha in alphas if alpha == 1], end
    for alpha in alphas:
        yield alpha, end if alpha == 1 else interpolate(start, end, alpha)


def summary(scorer: Scorer, opened: Opened) -> dict[str, Any]:
    """Whether each answer is right and, for ID and OOD sets, its confidence, in the order of the data."""
    shift, examples, _ = opened
    predictions: Predictions = scorer.predict(examples, shift.templates, shift.classes)
    confidence, right = ece.summaries(shift.project(predictions.logits), predictions.label).unbind(dim=1)
    packed: dict[str, Any] = {"n": len(right), "right": packed_bits(right.numpy() > 0)}
    if shift.role != "retain" and not shift.derived:
        packed["sure"] = packed_shares(confidence.numpy())
    return packed


def packed_bits(right: np.ndarray) -> str:
    """Answers as text, one bit each."""
    return b64encode(np.packbits(right).tobytes()).decode()


def unpacked_bits(text: str, count: int) -> np.ndarray:
    """The first `count` bits of a packed text."""
    return np.unpackbits(np.frombuffer(b64decode(text), np.uint8))[:count].astype(bool)


def packed_shares(values: np.ndarray) -> str:
    """Numbers in [0, 1] as text, in 65 536 steps."""
    return b64encode(np.rint(values * 65535).astype("<u2").tobytes()).decode()


def unpacked_shares(text: str) -> np.ndarray:
    """Shares in [0, 1] of a packed text."""
    return np.frombuffer(b64decode(text), "<u2") / 65535


def gap(folder: Path) -> dict[str, list[float]]:
    """The KL of teacher and student and the distance of their weights over the steps of a run."""
    log = folder / "log.jsonl"
    lines = list(record.read(log)) if log.exists() else []  # zero-shot writes no log
    divergence = [each for each in lines if "kl" in each]
    distance = [each for each in lines if "weight_gap" in each]
    return {
        "step": [each["step"] for each in divergence],
        "kl": [each["kl"] for each in divergence],
        "weight_step": [each["step"] for each in distance],
        "weight_gap": [each["weight_gap"] for each in distance],
    }


def distillation(run: Run, examples: Examples) -> list[float]:
    """TRACER's distillation loss, without λ, between student and teacher at the end, on all examples as one batch.

    Empty for a run without a teacher.
    """
    if not run.weights_file("teacher").exists():
        return []
    student, teacher = run.student("student").eval(), run.student("teacher").eval()
    batch = Batches(
        examples,
        batch=len(examples),
        seed=0,
        transform=Transform(student.preprocess_cfg),
        templates=examples.templates,
        tokeniser=student.tokeniser,
    )[0]
    with torch.no_grad():
        scene = Scene(student(batch), teacher(batch), batch.label)
    terms = composite("released", 1.0, "class", frobenius=0.0).weighted
    return [float(Objective(tuple(each for each in terms if "teacher" in each[1].needs))(scene).total)]


def layers(run: Run, examples: Examples) -> dict[str, float]:
    """CKA of each layer of the image tower with the same layer of the pretrained model."""
    before, after = run.student("pretrained"), run.student()
    images = Transform(before.preprocess_cfg).batch(examples.images, range(len(examples)))
    return {each.layer: each.cka for each in layer_similarity(before, after, [images])}
