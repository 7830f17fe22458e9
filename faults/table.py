"""What was found: a line while it runs, one table at the end, and a file."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version

from faults.suite import Tally
from faults.verdict import Outcome

BEGIN, END = "<!-- faults -->", "<!-- /faults -->"


def show(tally: Tally) -> None:
    """A line every so often, and at once where something is lost."""
    newest = tally.tried == 1 or tally.tried % 20 == 0
    if newest or (tally.lost and tally.counts[Outcome.LOST] == len(tally.lost) <= 3):
        told = f"{tally.tried} tried, {len(tally.lost)} lost, {tally.seconds:.0f} s"
        print(f"{tally.name}: {told}", flush=True)


def markdown(tallies: Sequence[Tally]) -> str:
    """The table."""
    rows = [["fault", "inputs tried", "survived", "refused clearly", "lost"]]
    rows.append(["---", "---:", "---:", "---:", "---:"])
    for tally in tallies:
        counts = [str(tally.counts[outcome]) for outcome in Outcome]
        rows.append([tally.title, str(tally.tried), *counts])
    sums = [str(sum(tally.counts[outcome] for tally in tallies)) for outcome in Outcome]
    rows.append(["all", str(sum(tally.tried for tally in tallies)), *sums])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def record(tallies: Sequence[Tally], seed: int, arguments: Sequence[str]) -> str:
    """Date, seed, command, versions and counts as JSON."""
    found = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join(("python -m faults", *arguments)),
        "seed": seed,
        "versions": {name: version(name) for name in ("tracer-clip", "torch", "safetensors", "pillow")},
        "python": platform.python_version(),
        "faults": [
            {
                "name": tally.name,
                "fault": tally.title,
                "tried": tally.tried,
                **{str(outcome): tally.counts[outcome] for outcome in Outcome},
                "seconds": round(tally.seconds, 1),
                "losses": [verdict._asdict() for verdict in tally.lost],
            }
            for tally in tallies
        ],
    }
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


def page(text: str, tallies: Sequence[Tally]) -> str:
    """The page with the table between its marks."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{markdown(tallies)}\n{END}{after}"
