"""docs/benchmarks.md: first what was asked for, then everything that was measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from studies.bench.records import Row, Section

ABOUT = """# Benchmarks

Written by `make bench` (`tracer bench --help`). A ratio is the median over rounds of two times that were taken in
turns, in both orders, in one run; below 1 ours is faster. The reference is written in `studies/bench/plain.py` the way
released recipes do it: 77 tokens, open_clip's loss, unfused AdamW, a loop for the teacher, `.item()` at every step.
Weights are random: speed does not depend on them. That a fast path computes what the plain one does is not measured
but tested, by `make test`: gradients in chunks (`tests/test_chunk.py`), text at its own length (`tests/test_text.py`),
heads (`tests/test_classifier.py`), one pass for all of them (`tests/test_evaluate.py`), the teacher's update
(`tests/test_shadow.py`), compiled towers, fused attention, a last block that ends early and steps that never wait
(`tests/test_thrift.py`), drafts and packed images (`tests/test_transforms.py`, `tests/data/test_pack.py`), several
processes (`tests/dist`). What else a run may save, and what the savings that are not exact cost, is in
[thrift.md](thrift.md)."""

HEADER = ("what", "ratio", "rounds from … to (of them)", "target", "ours", "reference")


def cells(row: Row) -> tuple[str, ...]:
    """A row as it is shown."""
    target = row.asked if row.met else f"{row.asked}: missed"
    return (row.what, f"{row.ratio:.2f}", row.spread, target, row.ours, row.reference)


def page(sections: Mapping[str, Section]) -> str:
    """The whole page."""
    asked = [
        (title, row.what, row.asked, f"{row.ratio:.2f}", "yes" if row.met else "**no**")
        for title, each in sections.items()
        for row in each.rows
        if row.target is not None
    ]
    parts = [ABOUT]
    if asked:
        parts += ["## Targets", _table(("benchmark", "what", "target", "measured", "met"), asked)]
    for title, each in sections.items():
        parts += [f"## {title}", f"{each.day}, {each.clock}; {each.machine}."]
        parts.append(_table(HEADER, map(cells, each.rows)))
    return "\n\n".join(parts) + "\n"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])
