"""What `tracer eval` has left in a run: measures of test sets, and the predictions that they come from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from tracer.evaluation.suites.shift import ROLES
from tracer.report.number import number

Moment = Literal["before", "after"]
WEIGHTS: dict[Moment, str] = {"before": "pretrained", "after": "result"}  # whose predictions are told
ROWS = "rows.json"


def predictions(folder: Path, moment: Moment) -> Path:
    """Where `tracer eval` leaves what the pretrained model, or the result, predicts."""
    return folder / "predictions" / WEIGHTS[moment]


def read_rows(kept: Path, notes: list[str]) -> tuple[dict[str, Any], ...]:
    """The measures that `tracer eval` has left beside predictions; what is no measure is left out, and told."""
    path = kept / ROWS
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, RecursionError) as error:
        notes.append(f"{path.parent.name}/{path.name} is not readable: {error}")
        return ()
    rows = [row for row in found if _measure(row)] if isinstance(found, list) else []
    if not isinstance(found, list) or len(rows) < len(found):
        notes.append(f"{path.parent.name}/{path.name} holds more than measures of test sets")
    return tuple(rows)


def _measure(row: Any) -> bool:
    named = ("shift", "role", "metric")
    return (
        isinstance(row, dict)
        and all(isinstance(row.get(name), str) for name in named)
        and row["role"] in ROLES
        and number(row.get("value")) is not None
    )
