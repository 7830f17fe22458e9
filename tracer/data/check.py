"""Whether a data set can be used, and what is in it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tracer.core.errors import UserError
from tracer.data.duplicates import duplicates
from tracer.data.examples import Examples
from tracer.data.report import Lengths, Report, Spread

CONTEXT = 77  # tokens that CLIP's text tower reads
LOOKED_AT = 20_000  # captions whose tokens are counted: enough to know


def validate(examples: Examples) -> None:
    """Refuse data that nothing can be learnt from, without looking at its images."""
    name, classes = examples.name, examples.classes
    if not len(examples):
        raise UserError(f"there are no images in {name}")
    if not examples.labelled and not examples.captioned:
        raise UserError(f"{name} has neither classes nor captions: put its images in one folder a class")
    if examples.captioned:
        empty = [not texts for texts in examples.captions]
        _refuse(examples, empty, "an empty caption", "--caption-column none takes class names instead")
    if not examples.labelled:
        return
    if len(classes) == 1 and not examples.captioned:
        raise UserError(f"{name} has one class only, {classes[0]!r}: there is nothing to tell apart")
    _refuse(examples, examples.labels == -1, "no label", "--label-column none takes captions alone")
    outside = (examples.labels < 0) | (examples.labels >= len(classes))
    _refuse(examples, outside, f"a label outside the {len(classes)} classes", "labels count from 0")
    nameless = [i for i, each in enumerate(classes) if not each.strip()]
    if nameless:
        raise UserError(f"class {nameless[0]} of {name} has an empty name")


def describe(
    examples: Examples,
    held_out: Examples | None = None,
    *,
    flags: Mapping[str, str | None] | None = None,
    tokens: Callable[[str], int] | None = None,
    context: int = CONTEXT,
) -> Report:
    """Counts, lengths, duplicates and findings; `flags` are those of the training command it recommends.

    `tokens` counts the tokens of a caption, by default as CLIP's own tokeniser does.
    """
    counts = np.bincount(examples.labels[examples.labels >= 0], minlength=len(examples.classes))
    return Report(
        name=examples.name,
        images=len(examples),
        held_out=None if held_out is None else len(held_out),
        classes=tuple(zip(examples.classes, counts.tolist(), strict=True)),
        lengths=_lengths(examples.captions, tokens, context),
        duplicates=duplicates(examples, held_out),
        skipped=examples.skipped,
        detected=examples.detected,
        command=command({"data": examples.name, **(flags or {})}),
    )


def command(flags: Mapping[str, str | None]) -> str:
    """The command that trains with these flags, ready to be pasted into a shell."""
    given = [(f"--{name.replace('_', '-')}", value) for name, value in flags.items() if value is not None]
    return shlex.join(["tracer", "train", *(part for flag in given for part in flag)])


def _lengths(
    captions: Sequence[tuple[str, ...]], tokens: Callable[[str], int] | None, context: int
) -> Lengths:
    texts = [text for several in captions for text in several]
    look = texts[:: max(1, len(texts) // LOOKED_AT)]
    counted = list(map(tokens or _clip_tokens(), look)) if look else []
    return Lengths(
        captions=len(texts),
        words=Spread.of([len(text.split()) for text in texts]),
        tokens=Spread.of(counted),
        context=context,
        too_long=round(sum(count > context for count in counted) * len(texts) / max(1, len(look))),
    )


def _clip_tokens() -> Callable[[str], int]:
    from tracer.models.open_clip_compat import open_clip  # late: only captions need it

    tokeniser = open_clip.tokenizer.SimpleTokenizer()
    return lambda text: len(tokeniser.encode(text)) + 2  # the start and the end


def _refuse(examples: Examples, wrong: np.ndarray | list[bool], what: str, advice: str) -> None:
    found = np.flatnonzero(wrong)
    if len(found):
        count = f"{len(found)} of {len(examples)} images in {examples.name} have {what}"
        raise UserError(f"{count}, for example {examples.ids[found[0]]}: {advice}")
