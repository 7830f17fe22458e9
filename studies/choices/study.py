"""Finetune and merge on small samples of three data sets, and compare what is printed with what is true.

Each data set is divided once: images to pretrain on, images to draw the users' data from, and images that give the true
accuracies and are used for nothing else. All three come from one distribution.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from studies.choices.sources import CLASSES, read
from tracer.api import merge as merging
from tracer.api.finetune import finetune
from tracer.core.weights import Weights
from tracer.data.examples import Examples, Pixels
from tracer.evaluation.verdict import Change
from tracer.merging.evaluator import Evaluator
from tracer.models.prompts import templates
from tracer.runs.run import Run

MODEL = Path(__file__).with_name("model.json")
PRETRAINING, TRUTH = 20_000, 4_000  # images of each data set; the rest is drawn from
SIZES = (300, 1_000, 5_000)
TEST_SET = 300  # images of a user's test set: the others give the truth
PROMPTS = "simple"
ALPHAS = "0:1:0.1"


@dataclass(frozen=True)
class Scale:
    """Steps and learning rates."""

    pretraining: int = 200
    pretraining_lr: float = 1e-3
    steps: int = 150
    batch: int = 32
    lr: float = 1e-3


@dataclass(frozen=True)
class Stated:
    """An interval that was printed, and the value that it should hold."""

    low: float
    value: float
    high: float
    truth: float


@dataclass(frozen=True)
class Outcome:
    """One finetuning and its merge: what was printed, and the accuracies on the images that give the truth."""

    data: str
    images: int
    seed: int
    held_out: int
    alpha: float
    told_apart: bool  # whether α was chosen by the held-out images
    truth: dict[str, float]  # the accuracy of the pretrained, finetuned and merged model
    clearly_worse: bool  # than no merge, on the images that give the truth
    accuracies: dict[str, Stated]  # printed by train and merge
    differences: dict[str, Stated]
    test_sets: int  # test sets of 300 images
    accuracies_covered: int  # of their intervals for the merged model, those that hold the truth
    differences_covered: int  # of their intervals against the pretrained model

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Outcome:
        """The outcome that `asdict` gave."""
        stated: dict[str, Any] = {
            part: {name: Stated(**each) for name, each in value[part].items()}
            for part in ("accuracies", "differences")
        }
        return cls(**{**value, **stated})


class Truth:
    """Images that give the true accuracies; the hits of the pretrained model, which all runs share, are kept."""

    def __init__(self, examples: Examples) -> None:
        self.examples = examples
        self._pretrained: np.ndarray | None = None

    def hits(self, evaluator: Evaluator, weights: Weights) -> np.ndarray:
        """Whether these weights name each image rightly, scored as `tracer eval` does."""
        predictions = evaluator.scorer(weights).predict(self.examples, templates(PROMPTS))
        return np.array(predictions.hits, bool)

    def pretrained(self, evaluator: Evaluator) -> np.ndarray:
        """The same for the weights before training."""
        if self._pretrained is None:
            self._pretrained = self.hits(evaluator, evaluator.group.start)
        return self._pretrained


def study(
    cache: Path,
    out: Path,
    seeds: Sequence[int],
    done: Collection[tuple[str, int, int]] = (),
    scale: Scale = Scale(),  # noqa: B008  (immutable)
) -> Iterator[Outcome]:
    """An outcome for every seed, data set and size, apart from those (data, images, seed) that are `done`."""
    model = pretrained(cache, out, scale)
    parts = {name: read(name, cache) for name in CLASSES}
    truths = {
        name: Truth(examples.take(np.arange(PRETRAINING, PRETRAINING + TRUTH)))
        for name, examples in parts.items()
    }
    for seed in seeds:
        for name, examples in parts.items():
            for size in SIZES:
                if (name, size, seed) in done:
                    continue
                pool = np.arange(PRETRAINING + TRUTH, len(examples))
                rows = np.random.default_rng([seed, size]).permutation(pool)[:size]
                yield outcome(examples.take(rows), truths[name], model, out, seed, scale)


def pretrained(cache: Path, out: Path, scale: Scale) -> Run:
    """A small CLIP pretrained on all thirty classes, once."""
    folder = out / "pretraining"
    if Run.exists(folder) and Run.open(folder).finished:
        return Run.open(folder)
    shares = [read(name, cache).take(np.arange(PRETRAINING)) for name in CLASSES]
    together = Examples(
        "pretraining",
        Pixels(np.concatenate([np.asarray(share.images.array) for share in shares])),  # pyright: ignore
        [each for share in shares for each in share.ids],
        np.concatenate([share.labels + 10 * number for number, share in enumerate(shares)]),
        [()] * (PRETRAINING * len(shares)),
        tuple(name for share in shares for name in share.classes),
    )
    return finetune(
        together,
        model=str(MODEL),
        method="flyp",
        pretrained="none",
        templates=PROMPTS,
        steps=scale.pretraining,
        batch=128,
        lr=scale.pretraining_lr,
        held_out_share=0.01,
        augment="none",
        out=folder,
        device="cpu",
    )


def outcome(sample: Examples, truth: Truth, model: Run, out: Path, seed: int, scale: Scale) -> Outcome:
    """Finetune on a sample with the defaults of tracer, merge, and compare with the truth."""
    folder = out / f"{sample.name}-{len(sample)}-{seed}"
    run = finetune(
        sample,
        model=model,
        templates=PROMPTS,
        steps=scale.steps,
        batch=scale.batch,
        lr=scale.lr,
        augment="none",
        seed=seed,
        out=folder,
        device="cpu",
        callback=lambda report: None,
    )
    request = merging.Merge(wise=ALPHAS)
    evaluator = merging.prepare(request, [run], "cpu")
    merged = merging.merged(request, evaluator)
    unmerged = next(each.scores for each in merged.candidates if each.alpha == 1)
    (end,) = evaluator.group.ends.values()
    hits = {
        "pretrained": truth.pretrained(evaluator),
        "finetuned": truth.hits(evaluator, end),
        "merged": truth.hits(evaluator, merged.weights),
    }
    shutil.rmtree(folder)
    before, after, n = evaluator.before, merged.scores, len(merged.scores.hits)
    share = {name: float(each.mean()) for name, each in hits.items()}
    accuracies = {"pretrained": before, "finetuned": unmerged, "merged": after}
    pairs = {
        "finetuned − pretrained": (before, unmerged, share["finetuned"] - share["pretrained"]),
        "merged − pretrained": (before, after, share["merged"] - share["pretrained"]),
        "merged − finetuned": (unmerged, after, share["merged"] - share["finetuned"]),
    }
    tests = covered_by_test_sets(hits, seed)
    return Outcome(
        data=sample.name,
        images=len(sample),
        seed=seed,
        held_out=n,
        alpha=merged.details["alpha"],
        told_apart="cannot tell" not in merged.notes[0],
        truth=share,
        clearly_worse=Change.of(hits["finetuned"].tolist(), hits["merged"].tolist()).difference.high < 0,
        accuracies={name: Stated(*each.interval, share[name]) for name, each in accuracies.items()},
        differences={
            name: Stated(*second.verdict(first).task.difference, true)
            for name, (first, second, true) in pairs.items()
        },
        test_sets=len(tests),
        accuracies_covered=sum(accuracy for accuracy, _ in tests),
        differences_covered=sum(difference for _, difference in tests),
    )


def covered_by_test_sets(hits: dict[str, np.ndarray], seed: int) -> list[tuple[bool, bool]]:
    """For each small test set, whether the intervals that `tracer eval` prints hold the truth of the other images.

    Test sets are drawn anew for each run: the same ones in all runs would be few, however many runs there are.
    """
    n = len(hits["merged"])
    order = np.random.default_rng([seed, int(hits["merged"].sum())]).permutation(n)
    covered = []
    for start in range(0, n - TEST_SET + 1, TEST_SET):
        own = np.zeros(n, bool)
        own[order[start : start + TEST_SET]] = True
        change = Change.of(hits["pretrained"][own].tolist(), hits["merged"][own].tolist())
        before, after = (float(hits[name][~own].mean()) for name in ("pretrained", "merged"))
        covered.append(
            (
                change.after.low <= after <= change.after.high,
                change.difference.low <= after - before <= change.difference.high,
            )
        )
    return covered


def to_json(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """The outcomes as JSON."""
    return [asdict(each) for each in outcomes]
