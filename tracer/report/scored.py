"""Files that `tracer eval` writes into a run: predictions on test sets, and their metrics."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Literal

from tracer.core.validation import fits
from tracer.evaluation.suites.shift import ROLES

Moment = Literal["before", "after"]
WEIGHTS: dict[Moment, str] = {"before": "pretrained", "after": "result"}  # by name of the weights
ROWS = "rows.json"


def predictions(folder: Path, moment: Moment) -> Path:
    """The folder of the predictions of the pretrained model or of the result."""
    return folder / "predictions" / WEIGHTS[moment]


def read_rows(folder: Path, notes: list[str]) -> tuple[dict[str, Any], ...]:
    """The metrics in a folder of predictions; what cannot be read is left out and adds a note."""
    path = folder / ROWS
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, RecursionError) as error:
        notes.append(f"{path.parent.name}/{path.name} is not readable: {error}")
        return ()
    rows = [row for row in content if _valid(row)] if isinstance(content, list) else []
    if not isinstance(content, list) or len(rows) < len(content):
        notes.append(f"{path.parent.name}/{path.name} holds more than measures of test sets")
    return tuple(rows)


def eval_flags(row: dict[str, Any]) -> tuple[str, ...]:
    """The flags of `tracer eval RUN` that gave this row; none in rows of older versions."""
    words = row.get("asked")
    return tuple(map(str, words)) if isinstance(words, list) else ()


def row_count(row: dict[str, Any]) -> int:
    """The number of images behind a row; 0 where it is not known."""
    return row["n"] if fits(row.get("n"), int) else 0


def _valid(row: Any) -> bool:
    return (
        isinstance(row, dict)
        and all(isinstance(row.get(name), str) for name in ("shift", "role", "metric"))
        and row["role"] in ROLES
        and fits(row.get("value"), float)
        and math.isfinite(row["value"])
    )
