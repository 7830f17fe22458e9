"""Check that a data set can be used, and describe what is in it."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from tracer.core.command_line import path_word
from tracer.core.errors import UserError
from tracer.data.checking.duplicates import duplicates
from tracer.data.checking.near_duplicates import near_duplicates
from tracer.data.checking.report import PAIRS, Leaks, Lengths, Report, Spread
from tracer.data.classes import visible
from tracer.data.examples import Examples
from tracer.data.scan_cache import cache_folder
from tracer.storage.atomic import write_text

CONTEXT = 77  # context length of CLIP's text tower, in tokens
SAMPLED = 20_000  # about this many captions are tokenised; the count of too long ones is extrapolated


def validate(examples: Examples) -> None:
    """Raise UserError if the data cannot be trained on. Images are not read."""
    name, classes = examples.name, examples.classes
    if not len(examples):
        raise UserError(f"there are no images in {name}")
    if not examples.labelled and not examples.captioned:
        raise _unusable(examples, "has neither classes nor captions: put its images in one folder a class")
    if examples.captioned:
        empty = [not texts for texts in examples.captions]
        _refuse(examples, empty, "an empty caption", "--caption-column none takes class names instead")
    if not examples.labelled:
        return
    if len(classes) == 1 and not examples.captioned:
        raise _unusable(examples, f"has one class only, {classes[0]!r}: there is nothing to tell apart")
    _refuse(examples, examples.labels == -1, "no label", "--label-column none takes captions alone")
    outside = (examples.labels < 0) | (examples.labels >= len(classes))
    _refuse(examples, outside, f"a label outside the {len(classes)} classes", "labels count from 0")
    nameless = [i for i, each in enumerate(classes) if not visible(each).strip()]
    if nameless:
        raise UserError(f"class {nameless[0]} of {name} has an empty name")
    foreign = [each for each in classes if each.encode(errors="ignore").decode() != each]
    if foreign:  # it would stand in prompts
        raise UserError(
            f"the class {foreign[0]!r} of {name} is not UTF-8: rename its folder, or name it with --classes FILE"
        )


def _unusable(examples: Examples, problem: str) -> UserError:
    """The error for data without anything to learn, with what is strange about them, which may be the cause."""
    return UserError("; ".join((f"{examples.name} {problem}", *examples.warnings)))


def describe(
    examples: Examples,
    held_out: Examples | None = None,
    test: Examples | None = None,
    *,
    source: str = "",
    flags: Mapping[str, str | None] | None = None,
    switches: Sequence[str] = (),
    warnings: Sequence[str] = (),
    tokens: Callable[[str], int] | None = None,
    context: int = CONTEXT,
) -> Report:
    """Counts, caption lengths, duplicates and leaks.

    `flags` are added to the training command that the report recommends; `source` says where the held-out examples
    come from; `warnings` are added to those of the examples.
    `tokens` counts the tokens of a caption; by default CLIP's tokeniser does.
    """
    counts = np.bincount(examples.labels[examples.labels >= 0], minlength=len(examples.classes))
    return Report(
        name=examples.name,
        images=len(examples),
        held_out=None if held_out is None else len(held_out),
        source=source,
        classes=tuple(zip(examples.classes, counts.tolist(), strict=True)),
        lengths=_lengths(examples.captions, tokens, context),
        test=None if test is None else len(test),
        duplicates=duplicates(examples, held_out),
        leaks=(
            *(() if held_out is None else (_leaks("held-out", examples, held_out),)),
            *(() if test is None else (_leaks("test", examples, test),)),
        ),
        skipped=examples.skipped,
        detected=examples.detected,
        warnings=(
            *dict.fromkeys(each for part in (examples, held_out, test) if part for each in part.warnings),
            *warnings,
        ),
        command=command({"data": examples.name, **(flags or {})}, switches),
    )


def _leaks(split: str, train: Examples, others: Examples) -> Leaks:
    """Images of a split that are nearly training images; if there are many, a file lists all of them."""
    leaks = Leaks(split, near_duplicates(train, others))
    if len(leaks.pairs) > PAIRS:
        digest = hashlib.blake2b(f"{train.name} {split}".encode(errors="replace"), digest_size=4).hexdigest()
        path = cache_folder() / f"copies-{digest}.txt"
        lines = "".join(f"{image}\t{copy}\n" for copy, image in leaks.pairs)
        with suppress(OSError):
            write_text(path, lines.encode(errors="replace").decode())
            return replace(leaks, listing=str(path))
    return leaks


def command(flags: Mapping[str, str | None], switches: Sequence[str] = ()) -> str:
    """The training command with these flags, and switches without a value, quoted for a shell."""
    pairs = [(f"--{name.replace('_', '-')}", value) for name, value in flags.items() if value is not None]
    words = [
        *(part for name, value in pairs for part in (name, path_word(value))),
        *(f"--{name}" for name in switches),
    ]
    return shlex.join(["tracer", "train", *words])


def _lengths(
    captions: Sequence[tuple[str, ...]], tokens: Callable[[str], int] | None, context: int
) -> Lengths:
    texts = [text for own in captions for text in own]
    sample = texts[:: max(1, len(texts) // SAMPLED)]
    counts = list(map(tokens or _clip_tokens(), sample)) if sample else []
    return Lengths(
        captions=len(texts),
        words=Spread.of([len(text.split()) for text in texts]),
        tokens=Spread.of(counts),
        context=context,
        too_long=round(sum(count > context for count in counts) * len(texts) / max(1, len(sample))),
    )


def _clip_tokens() -> Callable[[str], int]:
    from tracer.models.open_clip_compat import open_clip  # imported late: only captions need it

    tokeniser = open_clip.tokenizer.SimpleTokenizer()
    return lambda text: len(tokeniser.encode(text)) + 2  # the start and the end token


def _refuse(examples: Examples, wrong: np.ndarray | list[bool], what: str, advice: str) -> None:
    """Raise UserError if any example is `wrong`, with their number and the first one."""
    indices = np.flatnonzero(wrong)
    if len(indices):
        count = f"{len(indices)} of {len(examples)} images in {examples.name} have {what}"
        raise UserError(f"{count}, for example {examples.ids[indices[0]]}: {advice}")
