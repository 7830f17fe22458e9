"""The page docs/benchmarks.md: first the targets, then all results."""

from __future__ import annotations

from collections.abc import Mapping

from studies.bench.records import Row, Section
from tracer.core.markdown import markdown_table

ABOUT = """# Benchmarks

Written by `make bench` (`tracer bench --help`). A ratio is the median over rounds of two times that were taken
alternately, in both orders, in one run; below 1 ours is faster. The reference, `studies/bench/plain.py`, is written as
released recipes are: 77 tokens, open_clip's loss, unfused AdamW, a loop for the teacher, `.item()` at every step.
Weights are random, since speed does not depend on them. That a fast path computes the same as the plain one is covered
by tests: gradients in chunks (`tests/models/test_gradient_cache.py`), text at its own length
(`tests/models/test_text.py`), zero-shot heads (`tests/models/test_zero_shot.py`), one pass for several heads
(`tests/evaluation/test_predict.py`), the teacher's update (`tests/core/test_shadow.py`), compiled towers, fused
attention, a last block that ends early and steps without synchronisation (`tests/models/test_acceleration.py`), JPEG
drafts and packed images (`tests/data/test_transforms.py`, `tests/data/test_pack.py`), several processes
(`tests/parallel`). Options that save more memory or time, and what they cost, are in
[Memory and speed](memory-and-speed.md)."""

HEADER = ("what", "ratio", "rounds from … to (of them)", "target", "ours", "reference")


def cells(row: Row) -> tuple[str, ...]:
    """The cells of a row."""
    target = row.target_text if row.met else f"{row.target_text}: missed"
    return (row.what, f"{row.ratio:.2f}", row.spread, target, row.ours, row.reference)


def page(sections: Mapping[str, Section]) -> str:
    """The whole page."""
    targets = [
        (title, row.what, row.target_text, f"{row.ratio:.2f}", "yes" if row.met else "**no**")
        for title, each in sections.items()
        for row in each.rows
        if row.target is not None
    ]
    parts = [ABOUT]
    if targets:
        columns = ("benchmark", "what", "target", "measured", "met")
        parts += ["## Targets", markdown_table(columns, targets, align_right=False)]
    for title, each in sections.items():
        parts += [f"## {title}", f"{each.day}, {each.clock}; {each.machine}."]
        parts.append(markdown_table(HEADER, map(cells, each.rows), align_right=False))
    return "\n\n".join(parts) + "\n"
