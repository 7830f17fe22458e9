"""Runs written by hand: what a run's folder looks like, without training one."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from tracer.data.examples import Examples
from tracer.measure.answers import Answers, Estimate, Key, Predictions
from tracer.runs.run import Run

TERMS = ("contrastive", "feature")


def write_run(
    folder: Path,
    *,
    method: str = "tracer",
    seed: int = 0,
    steps: int = 20,
    options: dict[str, Any] | None = None,
    classes: tuple[str, ...] = ("red", "green"),
    fingerprint: str = "aaaa",
    data: str = "colours",
    accuracy: tuple[float, float] = (0.5, 0.9),
    kept: tuple[float, float] = (0.95, 0.9),
    retain: str = "digits",
    finished: bool = True,
    **settings: Any,
) -> Path:
    """A folder with description, log and result; curves are smooth functions of step and seed."""
    folder.mkdir(parents=True)
    experiment = {
        "data": data,
        "held_out": data,
        "retain": [retain],
        "batch": 8,
        "steps": steps,
        "model": "tiny-28",
    }
    experiment |= {"pretrained": "auto", "lr": 1e-3, "seed": seed, "method": method, "options": options or {}}
    described = {
        "id": f"{method}-{seed}",
        "experiment": experiment | settings,
        "steps": steps,
        "data": {
            "name": data,
            "train": 100,
            "held_out": 50,
            "fingerprint": fingerprint,
            "held_out_fingerprint": "bbbb",
        },
        "classes": list(classes),
        "versions": {"torch": "2"},
        "git": None,
        "created": "2026-11-15T10:00:00+00:00",
    }
    (folder / "experiment.json").write_text(json.dumps(described))
    lines = [json.dumps(line) for step in range(2, steps + 1, 2) for line in _lines(step, seed)]
    (folder / "log.jsonl").write_text("\n".join(lines) + "\n")
    if finished:
        before, after = ({"accuracy": accuracy[i], "retain": {retain: kept[i]}} for i in (0, 1))
        (folder / "result.json").write_text(json.dumps({"before": before, "after": after}))
    return folder


def write_scores(
    folder: Path, scores: dict[str, tuple[str, float]], weights: str = "result", n: int = 50
) -> None:
    """What `tracer eval` leaves: role and accuracy of each test set, and an ECE of a tenth of it."""
    for name, (role, share) in scores.items():
        write_answers(folder, weights, name, role, {"accuracy": share, "ece": share / 10}, n)


def write_answers(
    folder: Path,
    weights: str,
    name: str,
    role: Any,
    values: dict[str, float],
    n: int = 50,
    question: str = "",
    **more: Any,
) -> None:
    """What the weights answered of one test set; sets of one name are one unless the `question` is another."""
    rule = f"{name}: all 2 classes"
    estimates = tuple(
        Estimate(name, role, metric, value, value - 0.01, value + 0.01, n, rule=rule)
        for metric, value in values.items()
    )
    by = Run(folder).by(weights) if weights == "pretrained" else "trained"
    more = {"source": {"data": name, "options": {}}, **more}
    key = Key(name, question or name, *[name] * 4)
    Run(folder).answers(weights).write(Answers(name, role, key, by, estimates, **more))


def photos(folder: Path, count: int = 24, side: int = 120, names: tuple[str, str] = ("cat", "dog")) -> Path:
    """Images of two classes in folders: noise, mostly red in the first and mostly blue in the second."""
    rng = np.random.default_rng(0)
    for i in range(count):
        pixels = rng.integers(0, 120, (side, side, 3), np.uint8)
        pixels[..., 0 if i % 2 == 0 else 2] += 120
        place = folder / names[i % 2] / f"{i}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(place)
    return folder


def write_predictions(
    run: Path, examples: Examples, chosen: Tensor, weights: str, spec: str, role: str = "id"
) -> None:
    """What `tracer eval RUN --data role=spec` leaves, if it predicts the classes `chosen`, the later the surer."""
    logits = (
        torch.nn.functional.one_hot(chosen, len(examples.classes))
        * torch.linspace(1, 2, len(chosen))[:, None]
    )
    predictions = Predictions(logits, torch.from_numpy(examples.labels), examples.ids)
    values, more = {"accuracy": predictions.accuracy}, {"classes": examples.classes}
    hits = tuple(predictions.hits)
    write_answers(run, weights, spec, role, values, len(chosen), predictions=predictions, hits=hits, **more)


def _lines(step: int, seed: int) -> list[dict[str, Any]]:
    falling = math.exp(-step / 5) * (1 + 0.1 * seed)
    train = {
        "step": step,
        "kind": "train",
        "loss": 2 * falling,
        "lr": 1e-3,
        "scale": 14.0,
        "kl": falling / 10,
    }
    train |= dict.fromkeys(TERMS, falling) | {"agreement": 1 - falling / 2}
    return [train, {"step": step, "kind": "held_out", "accuracy": 1 - falling / 2, "weight_gap": falling}]
