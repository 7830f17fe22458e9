"""Runs written by hand: what a run's folder looks like, without training one."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

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
    rows = [
        {
            "shift": name,
            "role": role,
            "metric": metric,
            "value": value,
            "low": value - 0.01,
            "high": value + 0.01,
        }
        | {"n": n, "partial": False, "rule": f"{name}: all 2 classes"}
        for name, (role, share) in scores.items()
        for metric, value in (("accuracy", share), ("ece", share / 10))
    ]
    place = folder / "predictions" / weights
    place.mkdir(parents=True, exist_ok=True)
    (place / "rows.json").write_text(json.dumps(rows))


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
