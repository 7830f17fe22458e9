"""What a user may say about a source, beyond where it is."""

from __future__ import annotations

from dataclasses import dataclass, fields

from tracer.data.classes import Spec
from tracer.errors import UserError, unknown

SYNONYMS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "val"),
    **dict.fromkeys(("test", "testing"), "test"),
}


@dataclass(frozen=True)
class Options:
    """Which columns hold what, how the table is cut, what the classes are called, which split is meant."""

    image: str | None = None
    caption: str | None = None
    label: str | None = None
    separator: str | None = None
    classes: Spec | None = None
    split: str | None = None

    def refuse(self, source: str, *names: str) -> None:
        """Refuse options that mean nothing for this source, rather than ignore them."""
        for field in fields(self):
            if field.name in names and getattr(self, field.name) is not None:
                raise UserError(f"--{field.name} means nothing for {source}: leave it out")

    def choose(self, available: tuple[str, ...], source: str) -> str:
        """The split that is meant, among those `source` has: training data unless told otherwise."""
        wanted = canonical(self.split or "train")
        named = {canonical(each): each for each in available}
        if wanted in named:
            return named[wanted]
        if self.split is None and len(available) == 1:
            return available[0]
        raise unknown(f"split of {source}", self.split or "train", available)


def canonical(split: str) -> str:
    """One spelling for each split: train, val or test; any other name stays as it is."""
    return SYNONYMS.get(split.strip().lower(), split)


def in_order(splits: set[str]) -> tuple[str, ...]:
    """Split names in the order in which they are used."""
    known = ("train", "val", "test")
    return tuple(sorted(splits, key=lambda each: (known.index(each) if each in known else len(known), each)))
