"""Print progress, and write the results as JSON and as a Markdown table."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from studies.faults.suite import Tally
from studies.faults.verdict import Outcome, Verdict
from tracer.core.markdown import markdown_table
from tracer.storage.provenance import commit

BEGIN, END = "<!-- faults -->", "<!-- /faults -->"

Row = dict[str, Any]  # a scenario, its counts and its provenance


def show(tally: Tally, newest: Verdict) -> None:
    """Print a line every 50 inputs, and one for each lost input."""
    if newest.outcome is Outcome.LOST:
        print(f"{tally.name}: LOST {newest.what}: {newest.why[-300:]}", flush=True)
    elif tally.tried == 1 or tally.tried % 50 == 0:
        print(f"{tally.name}: {tally.tried} tried, {tally.seconds:.0f} s", flush=True)


def row(tally: Tally, seed: int, arguments: Sequence[str]) -> Row:
    """Counts, date, seed, command and versions of one scenario."""
    return {
        "name": tally.name,
        "fault": tally.title,
        "tried": tally.tried,
        **{str(outcome): tally.counts[outcome] for outcome in Outcome},
        "losses": [verdict._asdict() for verdict in tally.lost],
        "seconds": round(tally.seconds, 1),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join(("python -m studies.faults", *arguments)),
        "seed": seed,
        "commit": commit(),
        "versions": {name: version(name) for name in ("tracer-clip", "torch", "safetensors", "pillow")},
        "python": platform.python_version(),
    }


def finished(text: str, seed: int) -> set[str]:
    """The scenarios that a JSON text has with this seed and without a loss."""
    return {
        each["name"] for each in json.loads(text)["faults"] if each["seed"] == seed and not each["losses"]
    }


def merged(text: str, rows: Iterable[Row]) -> list[Row]:
    """The rows of a JSON text, with those of the scenarios in `rows` replaced."""
    earlier = json.loads(text)["faults"] if text else []
    return sorted({each["name"]: each for each in (*earlier, *rows)}.values(), key=lambda each: each["name"])


def to_json(rows: Sequence[Row]) -> str:
    """Rows as JSON."""
    return json.dumps({"faults": rows}, indent=2, ensure_ascii=False) + "\n"


def markdown(rows: Sequence[Row]) -> str:
    """The Markdown table, with a line of sums."""
    columns = ("tried", *map(str, Outcome))
    lines = [[each["fault"], *(str(each[column]) for column in columns)] for each in rows]
    total = ["all", *(str(sum(each[column] for each in rows)) for column in columns)]
    return markdown_table(("fault", "inputs tried", "survived", "refused clearly", "lost"), [*lines, total])


def page(text: str, rows: Sequence[Row]) -> str:
    """The page with the table and its provenance between the two markers."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    sources = dict.fromkeys((each["date"][:10], each["command"], each["seed"]) for each in rows)
    measured = "; ".join(f"{date}, `{command}`, seed {seed}" for date, command, seed in sources)
    return f"{before}{BEGIN}\n{markdown(rows)}\n\nMeasured: {measured}.\n{END}{after}"
