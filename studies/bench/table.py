"""Every benchmark as rows of ratios."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from studies.bench import adapters, growth, pair, peak, steps, teachers
from studies.bench.heads import heads
from studies.bench.pipeline import pipeline
from studies.bench.prediction import prediction, sweep
from studies.bench.records import Row
from studies.bench.timing import Timer, Times

SIZES = ((500, 375), (2000, 1500), (4000, 3000))
FAMILY = ("ViT-S-16", "ViT-M-16", "ViT-B-16")  # the same architecture at increasing width
# Targets of a TRACER step, against plain TRACER and plain FLYP.
MOST = {"ViT-B-16": (0.85, 1.15), "RN50": (0.75, 1.0)}
GIB = 2**30


def _row(times: Times, what: str, ours: str, reference: str, most: float | None = None) -> Row:
    ratios = times.ratios(ours, reference)
    spread = f"{min(ratios):.2f} … {max(ratios):.2f} ({len(ratios)})"
    mine, other = (f"{name}: {times.median(name):.3f} s" for name in (ours, reference))
    return Row(what, times.ratio(ours, reference), mine, other, None if most is None else (0.0, most), spread)


def _difference(what: str, measured: float, most: float) -> Row:
    """A difference as a share of the largest one allowed."""
    return Row(f"{what}, largest difference", measured / most, f"{measured:.1e}", f"{most:.0e}", (0.0, 1.0))


def step_rows(model: str, batch: int, timer: Timer) -> list[Row]:
    """A step of FLYP and of TRACER, ours and as released recipes do it."""
    times = steps.steps(model, batch, timer)
    against_tracer, against_flyp = MOST.get(model, (None, None))
    return [
        _row(times, "FLYP step", "our FLYP", "plain FLYP"),
        _row(times, "TRACER step", "our TRACER", "plain TRACER", against_tracer),
        _row(times, "TRACER step against the plain FLYP step", "our TRACER", "plain FLYP", against_flyp),
        _row(times, "TRACER over FLYP, ours", "our TRACER", "our FLYP", 1.38),
        _row(times, "TRACER over FLYP, plain", "plain TRACER", "plain FLYP"),
    ]


def overhead_rows(model: str, batch: int, timer: Timer) -> list[Row]:
    """TRACER against FLYP within our code, where the plain step would not fit in memory."""
    times = steps.overhead(model, batch, timer)
    return [_row(times, "TRACER over FLYP, ours", "our TRACER", "our FLYP", 1.38)]


def teacher_rows(model: str, batch: int, timer: Timer) -> list[Row]:
    """The teacher's update against a flat lerp of as many values, and against a loop."""
    del batch
    times = steps.teacher_update(model, timer.scaled(8))  # it is fast
    return [
        _row(times, "teacher update against one flat lerp", "our update", "a flat lerp", 1.3),
        _row(times, "teacher update against a loop", "our update", "a loop"),
    ]


def head_rows(model: str, batch: int, timer: Timer) -> list[Row]:
    """A zero-shot head against open_clip's, in time and in value."""
    del batch
    times, gap = heads(model, steps.CLASSES, timer.scaled(0.5))
    what = "zero-shot head, 10 classes × 80 prompts"
    return [_row(times, what, "our head", "open_clip's head", 1 / 6), _difference(what, gap, 1e-6)]


def eval_rows(model: str, batch: int, timer: Timer) -> list[Row]:
    """Images to logits, two heads, and three points between two models; the batch of a step plays no part."""
    del batch
    with TemporaryDirectory() as folder:
        times, gap = prediction(model, Path(folder) / "scored", timer)
        swept = sweep(model, Path(folder) / "swept", timer.scaled(0.5))
    what = "24 JPEGs to logits"
    return [
        _row(times, what, "ours", "a plain loop"),
        _difference(what, gap, 1e-4),
        _row(times, "two heads over the same images", "one pass", "two passes"),
        _row(swept, "three α between two models", "one model", "a model for each α"),
    ]


def chunk_rows(model: str, batch: int, timer: Timer) -> list[Row]:
    """A batch in two chunks against the same at once, in time and in gradients."""
    times = steps.chunks(model, batch, batch // 2, timer.scaled(0.5))
    what = f"batch {batch} in chunks of {batch // 2}"
    gap = steps.chunk_gap(model, batch, batch // 2)
    return [_row(times, what, "in chunks", "at once"), _difference(f"gradients of a {what}", gap, 1e-5)]


def memory_rows(model: str, batch: int, timer: Timer) -> list[Row]:
    """Peak memory, and the estimate of --dry-run against it."""
    del timer
    plain, ours = (peak.in_new_process(way, model, batch) for way in (peak.plain, peak.ours))
    rows = [_memory("peak of TRACER", ours, plain), _predicted(model, batch)]
    if not model.startswith("RN"):  # chunks are refused with BatchNorm
        chunked = peak.in_new_process(peak.ours, model, 4 * batch, batch)
        rows.append(_memory(f"batch {4 * batch} in chunks of {batch} against batch {batch}", chunked, ours))
        rows.append(_predicted(model, 4 * batch, batch))
    return rows


def large_rows(model: str, batch: int, timer: Timer) -> list[Row]:
    """A large batch in chunks within 6 GiB; takes minutes."""
    del timer
    taken = peak.in_new_process(peak.ours, model, 32 * batch, batch)
    return [_memory(f"batch {32 * batch} in chunks of {batch} against 6 GiB", taken, 6 * GIB, (0.0, 1.0))]


def _predicted(model: str, batch: int, chunk: int | None = None) -> Row:
    predicted, taken = (peak.in_new_process(way, model, batch, chunk) for way in (peak.predicted, peak.taken))
    what = f"--dry-run's estimate, batch {batch}" + (f" in chunks of {chunk}" if chunk else "")
    return _memory(what, predicted, taken, (0.8, 1.2))


def _memory(what: str, ours: int, reference: int, target: tuple[float, float] | None = None) -> Row:
    mine, other = (f"{size / GIB:.2f} GiB" for size in (ours, reference))
    return Row(what, ours / reference, mine, other, target)


def data_rows(model: str, batch: int, timer: Timer) -> list[Row]:
    """From JPEG files to a batch, against PIL and torchvision."""
    del model, batch
    rows = []
    for size in SIZES:
        with TemporaryDirectory() as folder:
            times, gap = pipeline(Path(folder), size, timer)
        name = f"JPEG {size[0]}×{size[1]} to 224"
        rows += [
            _row(times, f"{name} (drafts differ by {gap:.2f} levels of 255)", "ours", "PIL and torchvision"),
            _row(times, f"{name}, decoded in full", "ours, decoded in full", "PIL and torchvision"),
            _row(times, f"{name}, packed", "ours, packed", "PIL and torchvision"),
        ]
    return rows


def growth_rows(model: str, batch: int, timer: Timer) -> list[Row]:
    """How cost grows with batch, text length and classes."""
    grown = {
        "batch": growth.with_batch(model, (batch // 2, batch, 2 * batch), timer),
        "caption tokens": growth.with_length(model, (8, 16, 32, 77), batch, timer),
        "classes of a head": growth.with_classes(model, (10, 20, 40), timer.scaled(0.5)),
    }
    rows = []
    for what, times in grown.items():
        first, *others = times.seconds
        rows += [_row(times, f"{what}: {other} against {first}", other, first) for other in others]
    return rows


def size_rows(model: str, batch: int, timer: Timer) -> list[Row]:
    """Each model of a family against its first; `model` plays no part."""
    del model
    times, sizes = growth.with_parameters(FAMILY, batch, timer)
    first, *others = FAMILY
    return [
        _row(times, f"{other}, {sizes[other] / sizes[first]:.2f} times the parameters", other, first)
        for other in others
    ]


def adapter_rows(model: str, batch: int, timer: Timer) -> list[Row]:
    """TRACER with LoRA against released-style FLYP and against all weights, in time and in memory."""
    times = adapters.adapters(model, batch, timer)
    share = adapters.own_share(model)
    memory = [peak.in_new_process(way, model, batch) for way in (adapters.peak, peak.ours)]
    return [
        _row(times, "TRACER with LoRA against the plain FLYP step", "TRACER with LoRA", "plain FLYP", 1.0),
        _row(times, "TRACER with LoRA against TRACER", "TRACER with LoRA", "TRACER"),
        Row(
            "the teacher's own tensors against 2 % of the model",
            share / 0.02,
            f"{share:.2%}",
            "2 %",
            (0.0, 1.0),
        ),
        _memory("peak of TRACER with LoRA against TRACER", memory[0], memory[1], (0.0, 0.6)),
    ]


def cheaper_teacher_rows(model: str, batch: int, timer: Timer) -> list[Row]:
    """TRACER over FLYP with a cheaper forward of the teacher."""
    times = teachers.cheaper(model, batch, timer)
    return [_row(times, f"{name} over FLYP", name, "FLYP") for name in ("TRACER", *teachers.TIMED)]


def last_block_rows(model: str, batch: int, timer: Timer) -> list[Row]:
    """TRACER over FLYP where the last half of twelve blocks trains."""
    times = adapters.last_blocks(model, batch, 6, timer)
    return [
        _row(times, "TRACER over FLYP, last 6 blocks, prefix once", "TRACER, prefix once", "FLYP", 1.3),
        _row(times, "TRACER over FLYP, last 6 blocks, prefix twice", "TRACER, prefix twice", "FLYP"),
    ]


def text_rows(model: str, batch: int, timer: Timer) -> list[Row]:
    """A TRACER step with texts at their own length, against texts padded to the context length."""
    times, gap, (length, longest) = pair.texts(model, batch, timer)
    what = f"TRACER step, texts of {length} instead of {longest} tokens"
    most = 1 / 3 if model == pair.NAME else None
    return [_row(times, what, "own length", "padded", most), _difference(what, gap, 1e-6)]


def convolution_rows(model: str, batch: int, timer: Timer) -> list[Row]:
    """A TRACER step of a convolutional tower in the two memory formats, and as it trains now."""
    times, gap = adapters.convolutions(model, batch, timer)
    resnet = model.startswith("RN")
    what, tower = "TRACER step, channels last", "image tower, forward and backward, channels last"
    pool = " and a short attention pool"
    rows = [
        _row(times, what, "channels last", "channels first"),
        _row(times, tower, "tower, channels last", "tower, channels first", None if resnet else 1 / 1.4),
    ]
    if resnet:
        rows += [
            _row(times, what + pool, "now", "channels first", 1 / 1.1),
            _row(times, tower + pool, "tower, now", "tower, channels first"),
        ]
    return [*rows, _difference(what + pool * resnet, gap, 1e-5)]


SETS: dict[str, Callable[[str, int, Timer], list[Row]]] = {
    "steps": step_rows,
    "adapters": adapter_rows,
    "last": last_block_rows,
    "convolutions": convolution_rows,
    "texts": text_rows,
    "overhead": overhead_rows,
    "teacher": teacher_rows,
    "cheaper": cheaper_teacher_rows,
    "head": head_rows,
    "eval": eval_rows,
    "chunks": chunk_rows,
    "memory": memory_rows,
    "large": large_rows,
    "data": data_rows,
    "growth": growth_rows,
    "sizes": size_rows,
}
