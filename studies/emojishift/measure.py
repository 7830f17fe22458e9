"""A finished run on its suite: what is right, how sure it was, and how far its teacher was, in one small file."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from tracer.analysis.likeness import likeness
from tracer.core.errors import UserError
from tracer.core.metrics import ece
from tracer.core.weights import Weights
from tracer.data.emojishift import emoji_kinds
from tracer.data.examples import Examples
from tracer.data.transforms import Transform
from tracer.evaluation.predict import Predictions, Scorer
from tracer.evaluation.suites import Opened, Suite, corrupt, emojishift
from tracer.merging.family import family
from tracer.merging.wise import interpolate
from tracer.models.student import initialise_from, read_weights
from tracer.parallel import World
from tracer.runs import record
from tracer.runs.run import Run
from tracer.storage.atomic import write_text

FILE = "measures.json"
CORRUPTIONS = "all:3"  # of the trained style's test pictures: every kind, at the severity in the middle


def measure(
    run: Run, style: str, fold: int, alphas: Sequence[float], cpu_seconds: float | None
) -> dict[str, Any]:
    """Score the run, and the line from the pretrained model to it, on every shift; what was scored is kept."""
    file, asked = run.folder / FILE, suite(style, fold)
    known = json.loads(file.read_text()) if file.exists() else begun(run, style, fold)
    found = {"edition": edition(style, fold), **chosen(run, cpu_seconds), **known}
    whole = {alpha: scores for alpha, scores in found["scores"].items() if not lacking(scores, asked)}
    if found["edition"] != edition(style, fold):
        found["edition"], whole = edition(style, fold), {}
    if absent := [alpha for alpha in alphas if f"{alpha:g}" not in whole]:
        found["scores"] = whole | {f"{alpha:g}": scores for alpha, scores in scored(run, asked, absent)}
        write_text(file, json.dumps(found))
    return found


def begun(run: Run, style: str, fold: int) -> dict[str, Any]:
    """What is seen of a run before it is scored."""
    return {"gap": gap(run.folder), "layers": layers(run, emoji_kinds(style, fold, "val")), "scores": {}}


def scored(run: Run, asked: Suite, alphas: Sequence[float]) -> Iterator[tuple[float, dict[str, Any]]]:
    """The answers on every test set, at each α that the run can be mixed to."""
    opening, student = asked.open(), run.student("pretrained")
    for alpha, weights in line(run, alphas):
        initialise_from(student, weights)
        # No loader processes: pictures are small and in memory, and other runs have the other cores.
        scorer = Scorer(student, World("cpu", "fp32"), run.description["classes"], workers=0)
        yield alpha, {each.shift.name: summary(scorer, each) for each in opening.shifts}


@cache
def suite(style: str, fold: int) -> Suite:
    """What a run is measured on: every style, the names, and the trained style corrupted."""
    return corrupt(emojishift(style, fold), CORRUPTIONS)


@cache
def edition(style: str, fold: int) -> str:
    """A hash of all test sets, in their order: answers to others are none to these."""
    sets = [(each.shift.name, each.examples.fingerprint) for each in suite(style, fold).open().shifts]
    return blake2b(repr(sets).encode(), digest_size=8).hexdigest()


def lacking(scores: Mapping[str, Any], asked: Suite) -> list[str]:
    """The test sets of today that an earlier version did not measure."""
    return [each.name for each in asked.shifts if each.name not in scores]


def chosen(run: Run, cpu_seconds: float | None) -> dict[str, Any]:
    """What a run says without its test sets: who it is, and how it did in validation."""
    result = run.result
    return {
        "run": run.description["id"],
        "validation": result["after"]["accuracy"],
        "cpu_seconds": cpu_seconds,
        "commit": run.description.get("git"),
    }


def line(run: Run, alphas: Sequence[float]) -> Iterator[tuple[float, Weights]]:
    """The weights at each α between the pretrained model and the run; only the run's own where they do not mix."""
    end = read_weights(run.weights_file("result"))
    try:
        start = family([run]).start if min(alphas) < 1 else end
    except UserError:  # a head that the zero-shot classifier cannot take
        alphas, start = [alpha for alpha in alphas if alpha == 1], end
    for alpha in alphas:
        yield alpha, end if alpha == 1 else interpolate(start, end, alpha)


def summary(scorer: Scorer, opened: Opened) -> dict[str, Any]:
    """Each answer as a bit and, where calibration is asked for, its confidence, in the data's own order."""
    found: Predictions = scorer.predict_shift(opened)
    confidence, right = ece.summaries(found.logits, found.label).unbind(dim=1)
    told: dict[str, Any] = {"n": len(right), "right": packed_bits(right.numpy() > 0)}
    if opened.shift.role != "retain" and not opened.shift.derived:
        told["sure"] = packed_shares(confidence.numpy())
    return told


def packed_bits(right: np.ndarray) -> str:
    """Answers as text, so that a result file holds every single one."""
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
    """Teacher and student along the run: steps, their divergence, and the distance of their weights."""
    log = folder / "log.jsonl"
    lines = list(record.read(log)) if log.exists() else []  # who does not train writes no log
    seen = [each for each in lines if "kl" in each]
    apart = [each for each in lines if "weight_gap" in each]
    return {
        "step": [each["step"] for each in seen],
        "kl": [each["kl"] for each in seen],
        "weight_step": [each["step"] for each in apart],
        "weight_gap": [each["weight_gap"] for each in apart],
    }


def layers(run: Run, some: Examples) -> dict[str, float]:
    """CKA of each layer of the image tower with its pretrained self."""
    before, after = run.student("pretrained"), run.student()
    images = Transform(before.preprocess).batch(some.images, range(len(some)))
    return {each.layer: each.cka for each in likeness(before, after, [images])}
