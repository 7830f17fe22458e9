"""Kept or updated BatchNorm statistics under finetuning: `python -m studies.photoshift.batchnorm`.

Three families of convolutional towers, few and many steps, on photographs of six animals. The rule is in README.md.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from studies.choices.sources import read
from studies.emojishift.measure import packed_bits, unpacked_bits
from studies.fit.things import KNOWN, LATER, known_things, of_classes
from studies.photoshift.bridge import PROMPT, bridge
from tracer.api.finetune import finetune
from tracer.api.inputs import data_name
from tracer.api.run import Machine, run
from tracer.api.terminal import say
from tracer.cli.flags import cli
from tracer.core.markdown import markdown_table
from tracer.core.metrics import wilson_interval
from tracer.core.metrics.intervals import paired_interval
from tracer.data.examples import Examples
from tracer.evaluation import measured as measurement
from tracer.evaluation.predict import Scorer
from tracer.evaluation.verdict import plus_minus
from tracer.models.export import export
from tracer.models.student import Student, load
from tracer.parallel import World
from tracer.runs.experiment import Experiment
from tracer.storage.atomic import write_json
from tracer.storage.cache import cache_folder

RESULTS = Path(__file__).parent / "results" / "batchnorm.json"
TEXT = {"context_length": 16, "vocab_size": 49408, "width": 96, "heads": 3, "layers": 2}
# Towers that are pretrained here, on digits, clothes and animals: how, and the steps.
SMALL: dict[str, tuple[dict[str, Any], int]] = {
    "ModifiedResNet": ({"image_size": 32, "layers": [1, 1, 1, 1], "width": 16}, 800),
    "FastViT-T8": (
        {"timm_model_name": "fastvit_t8", "timm_pool": "avg", "timm_proj": "linear", "image_size": 64},
        400,
    ),
}
BRIDGE = "EfficientNet-Lite0"  # pretrained on ImageNet
TOWERS = (BRIDGE, *SMALL)
SETTINGS = ("keep", "train")
STEPS, RATES, SEEDS = (10, 60, 200), (3e-5, 3e-4), 3
TINY_RATE = 1e-6  # at which ten steps change no weight that matters
BATCH = 16
TRAIN, HELD_OUT, TEST, KEPT = 300, 120, 600, 300  # images
ANIMALS, VEHICLES = range(2, 8), (0, 1, 8, 9)  # classes of CIFAR-10


class Case(NamedTuple):
    """One run: the tower, the steps, the rate, what becomes of the statistics, the seed."""

    tower: str
    steps: int
    rate: float
    setting: str
    seed: int

    @property
    def name(self) -> str:
        return "-".join(map(str, self))


def cases() -> Iterator[Case]:
    """Every run of the study, the quick ones first."""
    for tower in reversed(TOWERS):
        for steps, rates in ((10, (TINY_RATE, *RATES)), *((steps, RATES) for steps in STEPS[1:])):
            for rate, seed, setting in product(rates, range(SEEDS), SETTINGS):
                yield Case(tower, steps, rate, setting, seed)


def start(tower: str, home: Path, cache: Path) -> Path:
    """The exported model of a tower, pretrained now if it is not there."""
    if tower == BRIDGE:
        return bridge(cache, 64)
    model = home / tower / "model"
    if not model.exists():
        vision, steps = SMALL[tower]
        config = home / tower / "small.json"
        write_json(config, {"embed_dim": 128, "vision_cfg": vision, "text_cfg": TEXT})
        finished = finetune(
            known_things(cache),
            model=str(config),
            method="flyp",
            pretrained="none",
            batchnorm="train",
            steps=steps,
            batch=64,
            lr=1e-3,
            held_out_share=0.02,
            augment="none",
            precision="fp32",
            out=home / tower / "run",
            device="cpu",
            workers=0,
            callback=lambda report: None,
        )
        export(finished.student(), model)
    return model


class Data(NamedTuple):
    """The pictures of a seed: to train on, to choose by, to test, and of what should be kept."""

    train: Examples
    held_out: Examples
    test: Examples
    kept: Examples


def data(tower: str, seed: int, cache: Path) -> Data:
    """Photographs of the animals; kept are the vehicles among ten names, or the clothes that a small tower knows."""
    photos = read("cifar", cache)
    later = photos.take(np.arange(LATER, len(photos)))
    animals = of_classes(later, ANIMALS)
    sizes = np.cumsum([TRAIN, HELD_OUT, TEST])
    rows = np.split(np.arange(seed * sizes[-1], (seed + 1) * sizes[-1]), sizes[:-1])
    train, held_out, test = (animals.take(part) for part in rows)
    if tower == BRIDGE:
        pool = later.take(np.flatnonzero(np.isin(later.labels, VEHICLES)))
    else:
        fashion = read("fashion", cache)
        pool = of_classes(fashion.take(np.arange(LATER, len(fashion))), KNOWN["fashion"])
    kept = pool.take(np.arange(seed * KEPT, (seed + 1) * KEPT))
    return Data(*(replace(each, templates=(PROMPT,)) for each in (train, held_out, test, kept)))


def scores(student: Student, parts: Data) -> dict[str, Any]:
    """Whether each test picture, and each of what should be kept, is named correctly."""
    world = World("cpu", "fp32")
    world.place(student)
    scorer = Scorer(student, world, parts.train.classes, workers=0)
    hits = {name: scorer.predict(getattr(parts, name), (PROMPT,)).hits for name in ("test", "kept")}
    return {name: {"n": len(each), "right": packed_bits(np.asarray(each))} for name, each in hits.items()}


def measured(case: Case, home: Path, cache: Path) -> dict[str, Any]:
    """A case with its answers, and the right answers on held-out pictures."""
    parts = data(case.tower, case.seed, cache)
    experiment = Experiment(
        method="ft",
        data=data_name(parts.train),
        held_out=data_name(parts.held_out),
        model=str(start(case.tower, home, cache)),
        templates=PROMPT,
        steps=case.steps,
        batch=BATCH,
        lr=case.rate,
        batchnorm=case.setting,  # pyrefly: ignore
        precision="fp32",
        seed=case.seed,
    )
    machine = Machine(device="cpu", workers=0)
    finished = run(experiment, home / "runs" / case.name, machine, evaluate_every=case.steps)
    held_out = round(finished.result["changes"]["task"]["after"][1] * HELD_OUT)
    return {**case._asdict(), "held_out": held_out, **scores(finished.student(), parts)}


def right(rows: Sequence[Mapping[str, Any]], part: str) -> list[bool]:
    """The answers of all seeds on their pictures."""
    return [
        bool(bit)
        for row in sorted(rows, key=lambda row: row["seed"])
        for bit in unpacked_bits(row[part]["right"], row[part]["n"])
    ]


def chosen(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows at the rate with most right answers on held-out pictures of all seeds; of equals the lowest."""
    rates = sorted({row["rate"] for row in rows})
    best = max(rates, key=lambda rate: (sum(row["held_out"] for row in rows if row["rate"] == rate), -rate))
    return [row for row in rows if row["rate"] == best]


def table(starts: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]) -> str:
    """Both settings by tower and steps: the task, its paired difference, and what the task does not have."""
    lines = []
    for tower, steps, rates in product(TOWERS, STEPS, ((TINY_RATE,), RATES)):
        before = [row for row in starts if row["tower"] == tower]
        own = [row for row in rows if (row["tower"], row["steps"]) == (tower, steps) and row["rate"] in rates]
        if not own:
            continue
        pair = [chosen([row for row in own if row["setting"] == name]) for name in SETTINGS]
        first, second = (right(each, "test") for each in pair)
        gain = paired_interval(second, first)
        names = dict.fromkeys(f"{each[0]['rate']:g}" for each in pair)
        lines.append(
            (
                tower,
                str(steps),
                ", ".join(names),
                *(share(right(each, "test")) for each in (before, *pair)),
                f"{100 * gain.value:+.1f} ± {100 * gain.half_width:.1f}",
                *(share(right(each, "kept")) for each in (before, *pair)),
            )
        )
    names = ("tower", "steps", "rate", "task before", "kept", "updated", "difference")
    return markdown_table((*names, "else before", "kept", "updated"), lines)


def share(hits: Sequence[bool]) -> str:
    """An accuracy in percent with its interval."""
    return plus_minus(wilson_interval(sum(hits) / len(hits), len(hits))).removesuffix(" %")


def main(
    home: Path = Path("runs/photoshift-batchnorm"),
    cache: Path = cache_folder() / "photoshift",  # noqa: B008  (a constant)
    results: Path = RESULTS,
    redraw: bool = False,
) -> None:
    """Carry out every run that the result file lacks, and print the table.

    Args:
        home: folder of pretrained models and runs.
        cache: folder of packages and arrays.
        results: result file.
        redraw: run nothing, print the table of the result file.
    """
    known = json.loads(results.read_text()) if results.exists() else {"starts": [], "rows": []}
    names = measurement.known_names()[:24]  # agreement on ImageNet's names is not used here, and takes long
    measurement.known_names = lambda: names
    for tower, seed in product(reversed(TOWERS), range(0 if redraw else SEEDS)):
        if not any((row["tower"], row["seed"]) == (tower, seed) for row in known["starts"]):
            student = load(str(start(tower, home, cache)))
            known["starts"].append(
                {"tower": tower, "seed": seed, **scores(student, data(tower, seed, cache))}
            )
            write_json(results, known)
    have = {Case(*(row[name] for name in Case._fields)) for row in known["rows"]}
    for case in () if redraw else cases():
        if case not in have:
            known["rows"].append(measured(case, home, cache))
            write_json(results, known)
            say(case.name)
    say(table(known["starts"], known["rows"]))


if __name__ == "__main__":
    cli(main, sys.argv[1:], "python -m studies.photoshift.batchnorm")
