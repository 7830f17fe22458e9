"""What a data set holds, as a record that can say it in plain lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from tracer.data.duplicates import Duplicates

SHOWN = 6  # of a list that may be long


@dataclass(frozen=True)
class Spread:
    """The least, the middle and the most of some numbers."""

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
    """How long the captions are."""

    captions: int
    words: Spread | None
    tokens: Spread | None
    context: int  # tokens that a text tower reads; what is longer is cut
    too_long: int


@dataclass(frozen=True)
class Report:
    """Counts and findings of one data set, and the command that trains on it."""

    name: str
    images: int
    held_out: int | None
    classes: tuple[tuple[str, int], ...]  # with how many images each has
    lengths: Lengths
    duplicates: Duplicates
    skipped: tuple[str, ...]
    detected: tuple[str, ...]
    command: str

    @property
    def per_class(self) -> Spread | None:
        return Spread.of([count for _, count in self.classes])

    def lines(self) -> list[str]:
        """The report in plain text, a finding a line."""
        return [f"{about:<11} {finding}" for about, finding in self._findings()]

    def _findings(self) -> Iterator[tuple[str, str]]:
        aside = "" if self.held_out is None else f", and {self.held_out} held out"
        yield "data", self.name
        yield "images", f"{self.images}{aside}"
        yield from (("found", note) for note in self.detected)
        yield from self._class_findings()
        yield from self._caption_findings()
        yield from self._duplicate_findings()
        if self.skipped:
            yield "unreadable", f"{len(self.skipped)} images, left out"
            yield from (("", each) for each in _some(self.skipped))
        yield "train with", self.command

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

    def _caption_findings(self) -> Iterator[tuple[str, str]]:
        lengths = self.lengths
        if not lengths.captions:
            yield "captions", "none: prompts are made of the class names"
            return
        yield "captions", f"{lengths.captions}; words in each: {lengths.words}; tokens: {lengths.tokens}"
        if lengths.too_long:
            yield "", f"{lengths.too_long} are longer than {lengths.context} tokens and will be cut"

    def _duplicate_findings(self) -> Iterator[tuple[str, str]]:
        found = self.duplicates
        copies = sum(len(group) - 1 for group in found.within)
        yield "duplicates", f"{copies} images are copies of another" if copies else "none"
        yield from (("", each) for each in _some([" = ".join(_some(group)) for group in found.within]))
        if found.contradicting:
            first = " = ".join(_some(found.contradicting[0]))
            yield "", f"{len(found.contradicting)} of them under different labels, such as {first}"
        if found.across:
            yield "", f"{len(found.across)} held-out images are also trained on, such as {found.across[0][1]}"


def _some(each: Sequence[str]) -> list[str]:
    return [*each[:SHOWN], f"… and {len(each) - SHOWN} more"] if len(each) > SHOWN else list(each)
