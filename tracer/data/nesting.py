"""Which level of a folder holds the splits and which the classes, and what looks like another level."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from tracer.core.errors import UserError
from tracer.data.options import SYNONYMS, canonical, sort_splits


def splits_of(paths: list[str], root: Path) -> tuple[str, ...]:
    """The splits, if all top-level folders are named after splits.

    Raises UserError if two or more are, and others are not.
    """
    tops = {path.partition("/")[0] for path in paths if "/" in path}
    named = {top for top in tops if canonical(top) in SYNONYMS.values()}
    if named == tops:
        return sort_splits(set(map(canonical, tops)))
    if len(set(map(canonical, named))) > 1:
        splits, other = " and ".join(sorted(named)), min(tops - named)
        raise UserError(
            f"{root} holds {splits} beside {other}: are they splits or classes? Give {root / min(named)} if they "
            f"are classes of {root}, or move {other} elsewhere if they are splits"
        )
    return ()


def nesting_warnings(root: Path, paths: list[str], splits: tuple[str, ...]) -> tuple[str, ...]:
    """A warning if the classes seem to lie one level deeper than they were looked for.

    Raises UserError if that is certain: one folder that holds all others, or folders such as photos and test-photos
    that hold the same folders.
    """
    below: dict[str, set[str]] = defaultdict(set)  # of each class folder, the folders in it; "" for images
    for path in paths:
        _, *folders = path.split("/")[bool(splits) : -1]
        below[path.split("/")[bool(splits)]].add(folders[0] if folders else "")
    first, inside = min(below.items())
    shown = " and ".join(sorted(inside)[:2])
    if len(below) == 1 and len(inside) > 1 and "" not in inside:
        if splits:
            instead = f"--data {root / paths[0].partition('/')[0] / first}, and other splits with --held-out"
        else:
            instead = str(root / first)
        raise UserError(f"{root} has one class, {first}, with the folders {shown} in it: give {instead}")
    shared = set.intersection(*below.values())
    alike = all(2 * len(shared) >= len(folders) for folders in below.values())
    if len(below) == 1 or len(shared) < 2 or not alike or any("" in folders for folders in below.values()):
        return ()
    tops, shown = " and ".join(sorted(below)[:2]), " and ".join(sorted(shared)[:2])
    message = f"{root}: {tops} hold the same folders, {shown}"
    if len(set(map(_without_split, below))) == 1:
        training = next((top for top in sorted(below) if _split(top) in ("", "train")), first)
        raise UserError(f"{message}, so they are data sets, not classes: give {root / training}")
    return (f"{message}: if these are the classes, give {root / first}",)


def _words(name: str) -> list[str]:
    return [word for word in re.split(r"[\W_]+", name.lower()) if word]


def _split(name: str) -> str:
    """The split that is part of a name, as in test-photos; empty if there is none."""
    return next((canonical(word) for word in _words(name) if canonical(word) in SYNONYMS.values()), "")


def _without_split(name: str) -> str:
    return " ".join(word for word in _words(name) if canonical(word) not in SYNONYMS.values())
