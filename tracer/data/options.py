"""What a user may say about a source, beyond where it is."""

from __future__ import annotations

from dataclasses import dataclass

from tracer.core.errors import UserError, unknown
from tracer.data.classes import Spec

SYNONYMS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "val"),
    **dict.fromkeys(("test", "testing"), "test"),
}


FLAGS = {
    "image": "--image-column",
    "caption": "--caption-column",
    "label": "--label-column",
    "separator": "--separator",
    "classes": "--classes",
}


@dataclass(frozen=True)
class Options:
    """Which columns hold what, how a table is cut, what the classes are called, which split is meant.

    Data without splits are a split of any name.
    """

    image: str | None = None
    caption: str | None = None
    label: str | None = None
    separator: str | None = None
    classes: Spec | None = None
    split: str | None = None

    def refuse(self, source: str, *names: str) -> None:
        """Refuse options that mean nothing for this source, rather than ignore them."""
        for name in names:
            if getattr(self, name) is not None:
                raise UserError(f"{FLAGS[name]} means nothing for {source}: leave it out")

    def choose(self, available: tuple[str, ...], source: str) -> str:
        """The split that is meant, among those `source` has: training data unless told otherwise."""
        wanted = canonical(self.split or "train")
        named = {canonical(each): each for each in available}
        if self.split is None and len(available) == 1:
            return available[0]
        # What some call their validation data others call their test data.
        other = {"val": "test", "test": "val"}.get(wanted, wanted)
        if not {wanted, other} & set(named):
            raise unknown(f"split of {source}", self.split or "train", available)
        return named.get(wanted) or named[other]


def canonical(split: str) -> str:
    """One spelling for each split: train, val or test; any other name stays as it is."""
    return SYNONYMS.get(split.strip().lower(), split)


def in_order(splits: set[str]) -> tuple[str, ...]:
    """Split names in the order in which they are used."""
    known = ("train", "val", "test")
    return tuple(sorted(splits, key=lambda each: (known.index(each) if each in known else len(known), each)))


def unseen(splits: tuple[str, ...]) -> str | None:
    """The split that training does not see: test, else val; None if there is neither."""
    named = {canonical(each): each for each in splits}
    return named.get("test") or named.get("val")
