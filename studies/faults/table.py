"""What was found: a line while it runs, one table at the end, and a file in which each kind has its newest count."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from studies.faults.suite import Tally
from studies.faults.verdict import Outcome, Verdict

BEGIN, END = "<!-- faults -->", "<!-- /faults -->"

Row = dict[str, Any]  # a kind, its counts, and how they were had


def show(tally: Tally, newest: Verdict) -> None:
    """A line every so often, and at once where something is lost."""
    if newest.outcome is Outcome.LOST:
        print(f"{tally.name}: LOST {newest.what}: {newest.why[-300:]}", flush=True)
    elif tally.tried == 1 or tally.tried % 50 == 0:
        print(f"{tally.name}: {tally.tried} tried, {tally.seconds:.0f} s", flush=True)


def row(tally: Tally, seed: int, arguments: Sequence[str]) -> Row:
    """Counts, date, seed, command and versions of one kind."""
    return {
        "name": tally.name,
        "fault": tally.title,
        "tried": tally.tried,
        **{str(outcome): tally.counts[outcome] for outcome in Outcome},
        "losses": [verdict._asdict() for verdict in tally.lost],
        "seconds": round(tally.seconds, 1),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join(("python -m faults", *arguments)),
        "seed": seed,
        "versions": {name: version(name) for name in ("tracer-clip", "torch", "safetensors", "pillow")},
        "python": platform.python_version(),
    }


def merged(text: str, rows: Iterable[Row]) -> list[Row]:
    """The rows of a file, those of kinds that were tried again replaced."""
    kept = json.loads(text)["faults"] if text else []
    return sorted({each["name"]: each for each in (*kept, *rows)}.values(), key=lambda each: each["name"])


def written(rows: Sequence[Row]) -> str:
    """Rows as JSON."""
    return json.dumps({"faults": rows}, indent=2, ensure_ascii=False) + "\n"


def markdown(rows: Sequence[Row]) -> str:
    """The table."""
    columns = ("tried", *map(str, Outcome))
    lines = [["fault", "inputs tried", "survived", "refused clearly", "lost"]]
    lines.append(["---", *("---:" for _ in columns)])
    lines += [[each["fault"], *(str(each[column]) for column in columns)] for each in rows]
    lines.append(["all", *(str(sum(each[column] for each in rows)) for column in columns)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def page(text: str, rows: Sequence[Row]) -> str:
    """The page with the table, and how it was had, between its marks."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    how = dict.fromkeys((each["date"][:10], each["command"], each["seed"]) for each in rows)
    told = "; ".join(f"{date}, `{command}`, seed {seed}" for date, command, seed in how)
    return f"{before}{BEGIN}\n{markdown(rows)}\n\nMeasured: {told}.\n{END}{after}"
