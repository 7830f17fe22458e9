"""Options for reading a data source, and the names of splits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tracer.core.errors import UserError, unknown
from tracer.data.classes import Spec, visible

SYNONYMS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev", "eval", "evaluation"), "val"),
    **dict.fromkeys(("test", "testing"), "test"),
}
COLUMNS = ("image", "caption", "label")  # options that name a column


@dataclass(frozen=True)
class Options:
    """The columns, the separator of a table, the class names and the split to read.

    None means: detect it. Data without splits count as any split that is requested.
    """

    image: str | None = None
    caption: str | None = None
    label: str | None = None
    separator: str | None = None
    classes: Spec | None = None
    split: str | None = None

    def refuse(self, source: str, *names: str) -> None:
        """Raise UserError if one of the options `names` is set, which `source` cannot use."""
        for name in names:
            if getattr(self, name) is not None:
                flag = f"--{name}-column" if name in COLUMNS else f"--{name}"
                raise UserError(f"{flag} means nothing for {source}: leave it out")

    def choose(self, available: tuple[str, ...], source: str) -> str:
        """The name of the requested split among those of `source`; the training split by default."""
        wanted = canonical(self.split or "train")
        known, names = splits_by_name(available), dict[str, str]()
        for each in available:
            if (other := names.setdefault(known.get(each, each), each)) != each:
                raise UserError(f"{source} has two splits {known[each]}, {other} and {each}: rename one")
        if self.split is None and len(available) == 1:
            return available[0]
        # Some data sets have only one of validation and test data.
        substitute = {"val": "test", "test": "val"}.get(wanted, wanted)
        if not {wanted, substitute} & set(names):
            raise unknown(f"split of {source}", self.split or "train", available)
        return names.get(wanted) or names[substitute]


def canonical(split: str) -> str:
    """One spelling for each split: train, val or test; any other name stays as it is."""
    return SYNONYMS.get(visible(split).strip().lower(), split)


def splits_by_name(names: Iterable[str]) -> dict[str, str]:
    """The split that each of these names stands for; names of no split are left out.

    `eval` is another word for val. Beside a validation split, and without a test split, it is the test split.
    """
    splits = {name: canonical(name) for name in names if canonical(name) in SYNONYMS.values()}
    evaluation = [name for name in splits if name.strip().lower() in ("eval", "evaluation")]
    others = {split for name, split in splits.items() if name not in evaluation}
    if "val" in others and "test" not in others:
        splits |= dict.fromkeys(evaluation, "test")
    return splits


def sort_splits(splits: set[str]) -> tuple[str, ...]:
    """Split names sorted: train, val, test, then all others by name."""
    order = ("train", "val", "test")
    return tuple(sorted(splits, key=lambda each: (order.index(each) if each in order else len(order), each)))


def has_split(splits: tuple[str, ...], wanted: str) -> bool:
    """Whether a source with these splits has the one that is called train, val or test, or a synonym of it."""
    return wanted in map(canonical, splits)
