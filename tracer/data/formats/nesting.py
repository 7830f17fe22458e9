"""Which level of a folder holds the splits and which the classes, and what looks like another level."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from posixpath import commonpath

from tracer.core.errors import UserError
from tracer.data.options import SYNONYMS, canonical, splits_by_name


def splits_of(paths: list[str], root: Path) -> dict[str, str]:
    """The split of each top-level folder, if all are named after splits; empty if none is.

    Raises UserError if two or more are and others are not, or if the splits lie inside the classes.
    """
    tops = {path.partition("/")[0] for path in paths if "/" in path}
    splits = splits_by_name(tops)
    if splits.keys() == tops:
        return splits
    if len(set(splits.values())) > 1:
        both, other = " and ".join(sorted(splits)), min(tops - splits.keys())
        raise UserError(
            f"{root} holds {both} beside {other}: are they splits or classes? Give {root / min(splits)} if they "
            f"are classes of {root}, or move {other} elsewhere if they are splits"
        )
    _refuse_splits_inside(paths, root)
    return {}


def _refuse_splits_inside(paths: list[str], root: Path) -> None:
    """Raise UserError if every class folder is divided into folders named after splits, as in cat/train."""
    inside = {path.split("/")[1] for path in paths if path.count("/") > 1}
    splits = splits_by_name(inside)
    if (
        len(set(splits.values())) > 1
        and splits.keys() == inside
        and all(path.count("/") > 1 for path in paths)
    ):
        top, second = min(paths).split("/")[:2]
        raise UserError(
            f"{root} has splits inside its classes, such as {top}/{second}: put the splits outside, as in "
            f"{root / second / top}, or list the images in a table with a column split"
        )


def nesting_warnings(root: Path, paths: list[str], splits: tuple[str, ...]) -> tuple[str, ...]:
    """A warning if the classes seem to lie one level deeper than they were looked for.

    Raises UserError if that is certain: one folder that holds all others, or folders such as photos and test-photos,
    or extra and train, that hold the same folders.
    """
    below: dict[str, set[str]] = defaultdict(set)  # of each class folder, the folders in it; "" for images
    for path in paths:
        _, *folders = path.split("/")[bool(splits) : -1]
        below[path.split("/")[bool(splits)]].add(folders[0] if folders else "")
    if len(below) == 1:
        _refuse_one_folder(root, paths, bool(splits))
        return ()
    shared = set.intersection(*below.values())
    alike = all(2 * len(shared) >= len(folders) for folders in below.values())
    if len(shared) < 2 or not alike or any("" in folders for folders in below.values()):
        return ()
    tops, shown = " and ".join(sorted(below)[:2]), " and ".join(sorted(shared)[:2])
    message = f"{root}: {tops} hold the same folders, {shown}"
    by_name = len(set(map(_without_split, below))) == 1 and any(map(_split, below))
    if by_name or splits_by_name(below):
        training = next((top for top in sorted(below) if _split(top) in ("", "train")), min(below))
        held_out = next((f" --held-out {root / top}" for top in sorted(below) if _split(top) == "val"), "")
        instead = f"give {root / training}{held_out}"
        if by_name:
            raise UserError(f"{message}, so they are data sets, not classes: {instead}")
        raise UserError(
            f"{message}: {instead} if they are data sets, or put the images of each class into its folder"
        )
    return (f"{message}: if these are the classes, give {root / min(below)}",)


def _refuse_one_folder(root: Path, paths: list[str], splits: bool) -> None:
    """Raise UserError if all images lie in one folder, at any depth, that holds several folders."""
    folders = [path.split("/")[splits:-1] for path in paths]
    depth = len(Path(commonpath("/".join(own) for own in folders)).parts)
    inside = {own[depth] if len(own) > depth else "" for own in folders}
    if len(inside) == 1 or "" in inside:
        return
    shown, place = " and ".join(sorted(inside)[:2]), "/".join(folders[0][:depth])
    if splits:
        instead = f"--data {root / paths[0].partition('/')[0] / place}, and other splits with --held-out"
    else:
        instead = str(root / place)
    where = "it" if depth == 1 else place
    raise UserError(
        f"{root} has one class, {folders[0][0]}, with the folders {shown} in {where}: give {instead}"
    )


def _words(name: str) -> list[str]:
    return [word for word in re.split(r"[\W_\d]+", name.lower()) if word]


def _split(name: str) -> str:
    """The split that is part of a name, as in test-photos; empty if there is none."""
    return next((canonical(word) for word in _words(name) if canonical(word) in SYNONYMS.values()), "")


def _without_split(name: str) -> str:
    return " ".join(word for word in _words(name) if canonical(word) not in SYNONYMS.values())
