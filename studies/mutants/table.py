"""The results as JSON rows and as a Markdown table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from studies.mutants.mutants import mutants
from studies.mutants.runner import Outcome
from tracer.core.markdown import markdown_table
from tracer.storage.provenance import commit

BEGIN, END = "<!-- mutants -->", "<!-- /mutants -->"

Row = dict[str, Any]  # a mutant, its outcome and its provenance


def row(outcome: Outcome, arguments: Sequence[str]) -> Row:
    """A mutant, what became of it, and the command and date."""
    mutant = outcome.mutant
    failed = [line for line in outcome.tail.splitlines() if line.startswith("FAILED ")]
    return {
        "subject": mutant.subject,
        "promise": mutant.promise,
        "file": mutant.file,
        "tests": list(mutant.tests),
        "outcome": outcome.outcome,
        "caught_by": failed[0].removeprefix("FAILED ").partition(" - ")[0] if failed else "",
        "seconds": outcome.seconds,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join(("python -m studies.mutants", *arguments)),
        "commit": commit(),
    }


def merged(rows: Iterable[Row], newer: Iterable[Row]) -> list[Row]:
    """The rows of mutants that still exist, in the order of the list; newer ones replace older ones."""
    by_promise = {each["promise"]: each for each in (*rows, *newer)}
    return [by_promise[each.promise] for each in mutants() if each.promise in by_promise]


def markdown(rows: Sequence[Row]) -> str:
    """Mutants and outcomes by subject, with a line of sums."""
    subjects = dict.fromkeys(each["subject"] for each in rows)
    lines = [_line(subject, [each for each in rows if each["subject"] == subject]) for subject in subjects]
    return markdown_table(("subject", "mutants", "caught", "survived"), [*lines, _line("all", rows)])


def _line(name: str, rows: Sequence[Row]) -> tuple[str, str, str, str]:
    outcomes = Counter(each["outcome"] for each in rows)
    return name, str(len(rows)), str(outcomes["caught"]), str(len(rows) - outcomes["caught"])


def page(text: str, rows: Sequence[Row]) -> str:
    """The page with the table and its provenance between the two markers."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    sources = dict.fromkeys((each["date"][:10], each["command"]) for each in rows)
    measured = "; ".join(f"{date}, `{command}`" for date, command in sources)
    return f"{before}{BEGIN}\n{markdown(rows)}\n\nMeasured: {measured}.\n{END}{after}"
