"""What `tracer check` says about a data set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from textwrap import wrap

import numpy as np

from tracer.core.command_line import command_line, path_word
from tracer.data.checking.duplicates import duplicates, near_duplicates
from tracer.data.checking.texts import unread
from tracer.data.examples import Examples
from tracer.data.split import Division
from tracer.models.token_count import TokenCount, sampled
from tracer.storage.cache import write_listing

WIDTH, INDENT = 80, 12  # of the lines
COMMAND = "train with"
SHOWN = 6  # items of a long list
PAIRS = 10  # pairs of a test image and a training image that are shown
IMBALANCE = 20  # times as many images in the largest class as in the smallest, from which on it is said

Findings = Iterator[tuple[str, str]]  # what a finding is about, and the finding


def describe(
    division: Division,
    test: Examples | None,
    training: str,
    tokens: TokenCount | str,
    templates: Sequence[str] = (),
) -> list[str]:
    """Counts, caption lengths, duplicates and leaks, as lines of 80 columns; commands and paths are never cut.

    `training` is the command that trains on these data, with which the report ends; `tokens` counts those of the model,
    or says why nobody can; `templates` make prompts of class names.
    """
    train, held_out = division.train, division.held_out

    def findings() -> Findings:
        yield "data", train.name
        yield "images", f"{len(train)}, and {len(held_out)} held out ({division.source})"
        if test is not None:
            evaluate = command_line("eval", "RUN", "--data", train.name)
            yield "test", f"{len(test)} images that training does not use: {evaluate}"
        yield from (("found", note) for note in train.detected)
        yield from (("left out", str(each)) for each in train.left_out)
        yield from _classes(train)
        yield from _captions(train)
        yield from _tokens(train, tokens, templates)
        yield from _duplicates(train)
        yield from _leaks("held-out", train, held_out)
        if test is not None:
            yield from _leaks("test", train, test)
        if train.skipped:
            yield "unreadable", f"{_number(len(train.skipped), 'image', 'images')}, left out"
            yield from (("", each) for each in _some(train.skipped))
        warnings = (*division.warnings, *(test.warnings if test else ()))
        yield from (("warning", each) for each in dict.fromkeys(warnings))
        yield COMMAND, training

    return [line for about, finding in findings() for line in _wrapped(about, finding)]


def command(flags: Mapping[str, str | None], switches: Sequence[str] = ()) -> str:
    """The training command with these flags, and switches without a value, quoted for a shell."""
    pairs = [(f"--{name.replace('_', '-')}", value) for name, value in flags.items() if value is not None]
    words = [part for name, value in pairs for part in (name, path_word(value))]
    return command_line("train", *words, *(f"--{name}" for name in switches))


def _classes(examples: Examples) -> Findings:
    if not examples.labelled:
        yield "classes", "none"
        return
    labels = examples.labels[examples.labels >= 0]
    counts = np.bincount(labels, minlength=len(examples.classes)).tolist()
    number_of = dict(zip(examples.classes, counts, strict=True))
    yield "classes", f"{len(number_of)}; images in each: {_spread(counts)}"
    ranked = sorted(number_of, key=lambda name: (-number_of[name], name))
    yield "", ", ".join(_some([f"{name} ({number_of[name]})" for name in ranked]))
    if names := [name for name, own in number_of.items() if own == 1]:
        yield "", f"with one image to train on: {', '.join(_some(names))}"
    smallest = min(filter(None, counts), default=0)
    if smallest and max(counts) >= IMBALANCE * smallest:
        times = f"{ranked[0]} has {max(counts) / smallest:.0f} times as many images as the smallest class"
        effect = "so the accuracy of small classes hardly counts in the total"
        yield "", f"imbalance: {times}, {effect}: tracer report RUN shows gain and loss by class"


def _captions(examples: Examples) -> Findings:
    texts = [text for own in examples.captions for text in own]
    if not texts:
        yield "captions", "none: prompts are made of the class names"
        return
    yield "captions", f"{len(texts)}; words in each: {_spread([len(text.split()) for text in texts])}"


def _tokens(examples: Examples, tokens: TokenCount | str, templates: Sequence[str]) -> Findings:
    """How long captions are for the model, and what it cuts of them and of prompts."""
    if isinstance(tokens, str):
        yield "tokens", f"not counted: {tokens}"
        return
    texts = [text for own in examples.captions for text in own]
    if texts:
        yield "tokens", f"in each caption, for {tokens.model}: {_spread(tokens(sampled(texts)))}"
    for number, sentence in enumerate(unread(tokens, examples, templates)):
        yield "" if number or texts else "tokens", sentence


def _duplicates(train: Examples) -> Findings:
    groups = duplicates(train)
    copies = sum(len(group) - 1 for group in groups)
    number = _number(copies, "image is a copy", "images are copies")
    yield "duplicates", f"{number} of another" if copies else "none"
    yield from (("", each) for each in _some([" = ".join(_some(group)) for group in groups]))


def _leaks(split: str, train: Examples, images: Examples) -> Findings:
    """The number of images of a split that nearly are training images, and the pairs; a file lists many of them."""
    pairs = near_duplicates(train, images)
    if not pairs:
        return
    number = _number(len(pairs), f"{split} image shows", f"{split} images show")
    advice = "accuracy on them is too good, so look at them and move or delete the copies"
    yield "leak", f"{number} what a training image shows: {advice}"
    yield from (("", f"{image} and {copy}") for copy, image in pairs[:PAIRS])
    if len(pairs) > PAIRS:
        listing = write_listing(
            "copies", f"{train.name} {split}", (f"{image}\t{copy}" for copy, image in pairs)
        )
        yield "", "; ".join(filter(None, (f"… and {len(pairs) - PAIRS} more", listing)))


def _spread(numbers: Sequence[int]) -> str:
    """Minimum, maximum and median."""
    least, most = min(numbers), max(numbers)
    return str(least) if least == most else f"{least} to {most} (median {median(numbers):g})"


def _some(items: Sequence[str]) -> list[str]:
    return [*items[:SHOWN], f"… and {len(items) - SHOWN} more"] if len(items) > SHOWN else list(items)


def _number(count: int, one: str, several: str) -> str:
    return f"{count} {one if count == 1 else several}"


def _wrapped(about: str, finding: str) -> list[str]:
    """The lines of a finding, all but the first indented; a command to copy stays on one line."""
    if about == COMMAND:
        return [f"{about:<{INDENT - 1}} {finding}"]
    lines = wrap(finding, WIDTH - INDENT, break_long_words=False, break_on_hyphens=False)
    return [f"{about if not number else '':<{INDENT - 1}} {line}" for number, line in enumerate(lines)]
