"""Every benchmark as rows of ratios."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from tracer.bench import growth, steps
from tracer.bench.heads import heads
from tracer.bench.page import Row
from tracer.bench.peak import peak
from tracer.bench.pipeline import pipeline
from tracer.bench.turns import Times

SIZES = ((500, 375), (2000, 1500), (4000, 3000))


def _row(times: Times, what: str, ours: str, reference: str, target: str = "") -> Row:
    ratios = times.ratios(ours, reference)
    spread = f"{min(ratios):.2f} … {max(ratios):.2f}"
    mine, other = (f"{name}: {times.median(name):.3f} s" for name in (ours, reference))
    return Row(what, times.ratio(ours, reference), mine, other, target, spread)


def step_rows(model: str, batch: int, rounds: int) -> list[Row]:
    times = steps.steps(model, batch, rounds)
    resnet = model.startswith("RN")
    targets = ("≤ 0.75", "≤ 1.00") if resnet else ("≤ 0.85", "≤ 1.15")
    return [
        _row(times, "FLYP step", "our FLYP", "plain FLYP"),
        _row(times, "TRACER step", "our TRACER", "plain TRACER", targets[0]),
        _row(times, "TRACER step against the plain FLYP step", "our TRACER", "plain FLYP", targets[1]),
        _row(times, "TRACER over FLYP, ours", "our TRACER", "our FLYP", "≤ 1.38"),
        _row(times, "TRACER over FLYP, plain", "plain TRACER", "plain FLYP"),
    ]


def overhead_rows(model: str, batch: int, rounds: int) -> list[Row]:
    times = steps.overhead(model, batch, rounds)
    return [_row(times, "TRACER over FLYP, ours", "our TRACER", "our FLYP", "≤ 1.38")]


def teacher_rows(model: str, batch: int, rounds: int) -> list[Row]:
    del batch
    times = steps.teacher_update(model, 4 * rounds)
    return [
        _row(times, "teacher update against one flat lerp", "our update", "a flat lerp", "≤ 1.30"),
        _row(times, "teacher update against a loop", "our update", "a loop"),
    ]


def head_rows(model: str, batch: int, rounds: int) -> list[Row]:
    del batch
    times, gap = heads(model, steps.CLASSES, max(2, rounds // 2))
    what = f"zero-shot head, 10 classes × 80 prompts (largest difference {gap:.0e})"
    return [_row(times, what, "our head", "open_clip's head", "≤ 0.17")]


def chunk_rows(model: str, batch: int, rounds: int) -> list[Row]:
    times = steps.chunks(model, 2 * batch, batch, rounds)
    return [_row(times, f"batch {2 * batch} in chunks of {batch}", "in chunks", "at once")]


def memory_rows(model: str, batch: int, rounds: int) -> list[Row]:
    del rounds
    plain, ours, chunked = (
        peak(way, model, count, chunk)
        for way, count, chunk in (("plain", batch, None), ("ours", batch, None), ("ours", 4 * batch, batch))
    )

    def gib(size: int) -> str:
        return f"{size / 2**30:.2f} GiB"

    return [
        Row("peak memory of TRACER", ours / plain, gib(ours), gib(plain)),
        Row(
            f"batch {4 * batch} in chunks of {batch} against batch {batch}",
            chunked / ours,
            gib(chunked),
            gib(ours),
        ),
    ]


def data_rows(model: str, batch: int, rounds: int) -> list[Row]:
    del model, batch
    rows = []
    for size in SIZES:
        with TemporaryDirectory() as folder:
            times, gap = pipeline(Path(folder), size, rounds)
        name = f"JPEG {size[0]}×{size[1]} to 224"
        rows += [
            _row(times, f"{name} (drafts differ by {gap:.2f} levels of 255)", "ours", "PIL and torchvision"),
            _row(times, f"{name}, decoded in full", "ours, decoded in full", "PIL and torchvision"),
            _row(times, f"{name}, packed", "ours, packed", "PIL and torchvision"),
        ]
    return rows


def growth_rows(model: str, batch: int, rounds: int) -> list[Row]:
    found = {
        "batch": growth.with_batch(model, (batch // 2, batch, 2 * batch), rounds),
        "caption tokens": growth.with_length(model, (8, 16, 32, 77), batch, rounds),
        "classes of a head": growth.with_classes(model, (10, 20, 40), max(2, rounds // 2)),
    }
    rows = []
    for what, times in found.items():
        first, *others = times.seconds
        rows += [_row(times, f"{what}: {other} against {first}", other, first) for other in others]
    return rows


SETS: dict[str, Callable[[str, int, int], list[Row]]] = {
    "steps": step_rows,
    "overhead": overhead_rows,
    "teacher": teacher_rows,
    "head": head_rows,
    "chunks": chunk_rows,
    "memory": memory_rows,
    "data": data_rows,
    "growth": growth_rows,
}
