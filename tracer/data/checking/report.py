"""What `tracer check` says about a data set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from textwrap import wrap

from tracer.core.command_line import command_line
from tracer.data.checking.duplicates import Duplicates

WIDTH, INDENT = 80, 12  # of the lines
COMMAND = "train with"
SHOWN = 6  # items of a long list
PAIRS = 10  # pairs of a test image and a training image that are shown
IMBALANCE = 20  # times as many images in the largest class as in the smallest, from which on it is said


@dataclass(frozen=True)
class Spread:
    """Minimum, median and maximum."""

    least: int
    median: float
    most: int

    @classmethod
    def of(cls, numbers: Sequence[int]) -> Spread | None:
        return cls(min(numbers), median(numbers), max(numbers)) if numbers else None

    def __str__(self) -> str:
        if self.least == self.most:
            return str(self.least)
        return f"{self.least} to {self.most} (median {self.median:g})"


@dataclass(frozen=True)
class Lengths:
    """The number and the lengths of captions."""

    captions: int
    words: Spread | None
    tokens: Spread | None
    context: int  # context length of the text tower, in tokens; longer captions are cut
    too_long: int


@dataclass(frozen=True)
class Leaks:
    """Images of a split that are the same, or nearly the same, as training images."""

    split: str
    pairs: tuple[tuple[str, str], ...]  # a training image, and one of the split
    listing: str = ""  # a file with all pairs, where they are too many to show

    def findings(self) -> Iterator[str]:
        """Their number, and the pairs: all of them where they are few."""
        number = _number(len(self.pairs), f"{self.split} image shows", f"{self.split} images show")
        yield (
            f"{number} what a training image shows: accuracy on them is too good, so look at them and move or "
            "delete the copies"
        )
        yield from (f"{image} and {copy}" for copy, image in self.pairs[:PAIRS])
        if len(self.pairs) > PAIRS:
            listed = f"; all are listed in {self.listing}" if self.listing else ""
            yield f"… and {len(self.pairs) - PAIRS} more{listed}"


@dataclass(frozen=True)
class Report:
    """Counts and findings of one data set, and the command that trains on it."""

    name: str
    images: int
    held_out: int | None
    test: int | None  # images of a split test, which training does not use
    source: str  # of the held-out images
    classes: tuple[tuple[str, int], ...]  # name and number of images
    lengths: Lengths
    duplicates: Duplicates
    leaks: tuple[Leaks, ...]
    skipped: tuple[str, ...]
    detected: tuple[str, ...]
    warnings: tuple[str, ...]
    command: str

    @property
    def per_class(self) -> Spread | None:
        return Spread.of([count for _, count in self.classes])

    def lines(self) -> list[str]:
        """The report as plain text within 80 columns; commands, paths and other words are never cut."""
        return [line for about, finding in self._findings() for line in _wrapped(about, finding)]

    def _findings(self) -> Iterator[tuple[str, str]]:
        source = f" ({self.source})" if self.source else ""
        held_out = "" if self.held_out is None else f", and {self.held_out} held out{source}"
        yield "data", self.name
        yield "images", f"{self.images}{held_out}"
        if self.test is not None:
            evaluate = command_line("eval", "RUN", "--data", self.name)
            yield "test", f"{self.test} images that training does not use: {evaluate}"
        yield from (("found", note) for note in self.detected)
        yield from self._class_findings()
        yield from self._caption_findings()
        yield from self._duplicate_findings()
        if self.skipped:
            yield "unreadable", f"{_number(len(self.skipped), 'image', 'images')}, left out"
            yield from (("", each) for each in _some(self.skipped))
        yield from (("warning", each) for each in self.warnings)
        yield COMMAND, self.command

    def _class_findings(self) -> Iterator[tuple[str, str]]:
        if not self.classes:
            yield "classes", "none"
            return
        yield "classes", f"{len(self.classes)}; images in each: {self.per_class}"
        ranked = sorted(self.classes, key=lambda each: (-each[1], each[0]))
        yield "", ", ".join(_some([f"{name} ({count})" for name, count in ranked]))
        empty = [name for name, count in self.classes if not count]
        if empty:
            yield "", f"without any image: {', '.join(_some(empty))}"
        single = [name for name, count in self.classes if count == 1]
        if single:
            yield "", f"with one image to train on: {', '.join(_some(single))}"
        counts = [count for _, count in self.classes if count]
        if counts and max(counts) >= IMBALANCE * min(counts):
            times = f"{max(counts) / min(counts):.0f} times"
            yield (
                "",
                f"imbalance: {ranked[0][0]} has {times} as many images as the smallest class, so the accuracy of small "
                "classes hardly counts in the total: tracer report RUN shows gain and loss by class",
            )

    def _caption_findings(self) -> Iterator[tuple[str, str]]:
        lengths = self.lengths
        if not lengths.captions:
            yield "captions", "none: prompts are made of the class names"
            return
        yield "captions", f"{lengths.captions}; words in each: {lengths.words}; tokens: {lengths.tokens}"
        if lengths.too_long:
            yield "", f"{lengths.too_long} are longer than {lengths.context} tokens and will be cut"

    def _duplicate_findings(self) -> Iterator[tuple[str, str]]:
        duplicates = self.duplicates
        copies = sum(len(group) - 1 for group in duplicates.within)
        yield (
            "duplicates",
            f"{_number(copies, 'image is a copy', 'images are copies')} of another" if copies else "none",
        )
        yield from (("", each) for each in _some([" = ".join(_some(group)) for group in duplicates.within]))
        if duplicates.contradicting:
            first = " = ".join(_some(duplicates.contradicting[0]))
            yield "", f"{len(duplicates.contradicting)} of them under different labels, such as {first}"
        if duplicates.across:
            first = duplicates.across[0][1]
            count = _number(len(duplicates.across), "held-out image is", "held-out images are")
            yield "", f"{count} also trained on, such as {first}"
        for leaks in self.leaks:
            if leaks.pairs:
                yield from (("" if i else "leak", each) for i, each in enumerate(leaks.findings()))


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
