"""Evaluation: images to logits against a plain loop, one pass for two heads, and interpolation of two models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.nn.functional import normalize

from studies.bench.pipeline import photographs
from studies.bench.steps import CLASSES
from studies.bench.timing import Timer, Times
from tracer.data.encoded import Files
from tracer.data.examples import Examples
from tracer.evaluation.predict import Scorer
from tracer.merging.wise import interpolate
from tracer.models.open_clip_compat import open_clip
from tracer.models.student import Student, initialise_from, load
from tracer.models.zero_shot import zero_shot
from tracer.parallel import World
from tracer.storage.safetensors_io import read_weights, write_weights

PROMPTS = ("a photo of a {}.",)
OTHERS = ("mountain", "harbour", "desert", "forest")
ALPHAS = (0.0, 0.5, 1.0)


def prediction(model: str, folder: Path, timer: Timer, count: int = 24) -> tuple[Times, float]:
    """Times to score JPEG files, and the largest difference between our logits and the plain ones."""
    files = photographs(folder / "photos", (500, 375), count)
    student = load(model).eval()
    scorer, examples = Scorer(student, World("cpu", "fp32"), workers=0), _examples(files)
    rows = zero_shot(student, CLASSES, PROMPTS).T * student.scale.detach()
    logits: dict[str, Tensor] = {}

    def one_pass() -> None:
        embedded = scorer.embed(examples)
        for names in (CLASSES, OTHERS):
            scorer.score(embedded, PROMPTS, names)

    def two_passes() -> None:
        for names in (CLASSES, OTHERS):
            scorer.predict(examples, PROMPTS, names)

    times = timer(
        {
            "a plain loop": lambda: logits.update(plain=plain(student, files, rows)),
            "ours": lambda: logits.update(ours=scorer.predict(examples, PROMPTS).logits),
            "two passes": two_passes,
            "one pass": one_pass,
        }
    )
    return times, float((logits["ours"] - logits["plain"]).abs().max())


@torch.no_grad()
def plain(student: Student, files: Files, rows: Tensor) -> Tensor:
    """The usual evaluation loop: open_clip's transform, one image after the other, batches of 64."""
    config = open_clip.transform.PreprocessCfg(**student.preprocess_cfg)
    transform: Any = open_clip.transform.image_transform_v2(config, is_train=False)
    logits = []
    for start in range(0, len(files), 64):
        numbers = range(start, min(start + 64, len(files)))
        images = torch.stack([transform(Image.open(files.name(number))) for number in numbers])
        logits.append(normalize(student.clip.encode_image(images), dim=-1) @ rows)
    return torch.cat(logits)


def sweep(model: str, folder: Path, timer: Timer, count: int = 8) -> Times:
    """Three points between two models, with one model in memory or a new one for each point."""
    examples = _examples(photographs(folder / "photos", (500, 375), count))
    student, ends = load(model).eval(), [folder / f"{seed}.safetensors" for seed in range(2)]
    for seed, file in enumerate(ends):
        write_weights(file, dict(load(model, seed=seed).state_dict()))
    start, end = (read_weights(file) for file in ends)

    def in_place() -> list[Tensor]:
        return [_scored(student, examples, interpolate(start, end, alpha)) for alpha in ALPHAS]

    def reloaded() -> list[Tensor]:
        logits = []
        for alpha in ALPHAS:
            one, other = (read_weights(file) for file in ends)
            logits.append(_scored(load(model).eval(), examples, interpolate(one, other, alpha)))
        return logits

    return timer({"a model for each α": reloaded, "one model": in_place})


def _scored(student: Student, examples: Examples, weights: dict[str, Tensor]) -> Tensor:
    initialise_from(student, weights)
    return Scorer(student, World("cpu", "fp32"), workers=0).predict(examples, PROMPTS).logits


def _examples(files: Files, classes: Sequence[str] = CLASSES) -> Examples:
    label = np.arange(len(files)) % len(classes)
    return Examples("photographs", files, list(files.paths), label, [()] * len(files), tuple(classes))
