"""Columns of cells, as tables, archives, shards and data sets of the hub have them: which of them hold the image, the
caption, the label and the split, and what they say of each row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tracer.core.errors import UserError, unknown
from tracer.data.formats.values import text, texts
from tracer.data.options import ABBREVIATIONS, SPLITS, SYNONYMS, Options, Splits, canonical, splits_by_name

T = TypeVar("T")

NONE = "none"  # given instead of a column name: use no column

# Common names of such columns, the least ambiguous first.
IMAGE = (
    *("image_path", "img_path", "filepath", "file_path", "path", "image_file", "img_file", "filename"),
    *("file_name", "file", "image_name", "image", "img", "images", "photo", "picture", "jpg", "png"),
)
CAPTION = (
    *("title", "caption", "captions", "text", "texts", "txt", "sentence", "sentences", "description"),
    *("prompt", "alt_text", "alt"),
)
LABEL = (
    *("class_name", "classname", "label_name", "category_name", "label", "labels", "class", "category"),
    *("species", "target", "y", "cls", "class_id", "label_id", "category_id"),
)
SPLIT = ("split", "set", "subset", "partition", "fold")
KNOWN = frozenset((*IMAGE, *CAPTION, *LABEL, *SPLIT))

YES_OR_NO = frozenset(("0", "1", "true", "false", "yes", "no", "t", "f", "y", "n", ""))
MOST_NAMES = 10  # of splits in a column
ADVICE = "write train, val or test, or rename the column"


@dataclass(frozen=True)
class Columns:
    """The names of the columns in use; None if there is no such column."""

    image: str
    caption: str | None = None
    label: str | None = None
    others: tuple[str, ...] = ()

    def detected(self, called: str = "column") -> list[str]:
        """A note for the report on each column; in other sources they are called arrays or members."""
        roles = {"image": self.image, "caption": self.caption, "label": self.label}
        used = [f"{role} {called}: {name}" for role, name in roles.items() if name is not None]
        return [*used, f"other {called}s: {_join(self.others)}"] if self.others else used

    def keys(self, table: Mapping[str, Iterable[Any]], source: str) -> list[str] | None:
        """The label of each row, as it is written; None if there is no such column."""
        return list(each_cell(text, table[self.label], source)) if self.label else None

    def captions(self, table: Mapping[str, Iterable[Any]], source: str) -> list[tuple[str, ...]] | None:
        """The captions of each row; None if there is no such column."""
        return list(each_cell(texts, table[self.caption], source)) if self.caption else None


def each_cell(read: Callable[[Any], T], cells: Iterable[Any], source: str) -> Iterator[T]:
    """What `read` makes of each cell of a column; its errors name the row."""
    for row, cell in enumerate(cells, 1):
        try:
            yield read(cell)
        except UserError as error:
            raise UserError(f"{source}, row {row}: {error}") from error


def find_columns(
    names: Sequence[str],
    options: Options,
    source: str,
    *,
    image: str | None = None,
    binary: Sequence[str] = (),
) -> Columns:
    """The columns named in the options, else detected by name; `image` overrides if it is already known.

    A column out of `binary`, which hold images themselves, is preferred to one that holds paths.
    """
    embedded = None if options.image else column(binary, None, IMAGE)
    image = image or embedded or column(names, options.image, IMAGE)
    if image is None and len(binary) == 1:
        image = binary[0]
    if image is None:
        raise UserError(
            f"{source} has no column that looks like an image path: its columns are {_join(names)}; "
            "name the right one with --image-column"
        )
    plain = [name for name in names if name not in binary]
    caption, label = column(plain, options.caption, CAPTION), column(plain, options.label, LABEL)
    if caption is None and label is None and NONE not in (options.caption, options.label):
        raise UserError(
            f"{source} has no column that looks like a caption or a label: its columns are {_join(names)}; "
            "name one with --caption-column or --label-column"
        )
    return Columns(
        image, caption, label, tuple(name for name in names if name not in (image, caption, label))
    )


def count_known_names(names: Sequence[str]) -> int:
    """How many of the names are known column names."""
    return sum(_normalise(name) in KNOWN for name in names)


def column(names: Sequence[str], requested: str | None, candidates: Sequence[str]) -> str | None:
    """The requested column, else the one with the first of the candidates' names; None if there is none."""
    if requested is not None:
        if requested in names:
            return requested
        if requested == NONE:
            return None
        raise unknown("column", requested, names)
    normalised: dict[str, list[str]] = {}
    for name in names:
        normalised.setdefault(_normalise(name), []).append(name)
    alike = next((normalised[name] for name in candidates if name in normalised), [])
    if len(alike) > 1:
        raise UserError(
            f"the columns {_join(alike)} differ in spelling only: rename one, or say which is meant "
            "with --image-column, --caption-column or --label-column"
        )
    return next(iter(alike), None)


def _normalise(name: str) -> str:
    return "_".join(name.lower().replace("-", " ").replace("_", " ").split())


def _join(names: Sequence[str], limit: int = 12) -> str:
    shown = ", ".join(repr(name) for name in names[:limit])
    return f"{shown} and {len(names) - limit} more" if len(names) > limit else shown or "(none)"


def row_splits(table: Mapping[str, Sequence[Any]], columns: Columns, source: str) -> Splits:
    """The splits of the rows, by a column called split, set, subset, partition or fold, or one that names splits.

    Raises UserError where rows could be trained on and tested at once: if some rows name a split and others do not,
    if two columns name different splits, or if a column such as is_test says yes or no, or Usage says Training and
    PrivateTest. A column called split in which no row names one is ignored, with a warning unless it holds folds or
    nothing; so is a column in which some rows say train and others nothing that is known, with a warning.
    """
    used = (columns.image, columns.caption, columns.label)
    free = {name: list(map(_cell, table[name])) for name in table if name not in used}
    called = column(list(free), None, SPLIT)
    found: dict[str, Splits] = {}
    for name, cells in free.items():
        distinct = set(cells)
        splits = {canonical(cell) for cell in distinct}
        numbers = {_cell(value) for value in table[name] if not isinstance(value, str)}
        if name == called or _divides(splits - numbers, "" in distinct):
            found[name] = _read(name, cells, source)
        elif _alluded(name) and len(distinct) > 1 and {cell.lower() for cell in distinct} <= YES_OR_NO:
            raise UserError(
                f"{source}: the column {name} seems to say which rows are for a test: write a column split with "
                "train, val or test, or rename it"
            )
        elif _allude_to_several(distinct):
            raise UserError(
                f"{source}: the column {name} seems to name splits, such as {cells[0]!r}: write a column split "
                "with train, val or test, or leave it out"
            )
        elif "train" in splits and 1 < len(splits) <= MOST_NAMES:
            other = next(cell for cell in cells if canonical(cell) != "train")
            note = f"column {name}: no split, some rows say train and others {other!r}"
            found[name] = Splits(warning=f"{source}: {note}; all rows are used", none=note)
    usable = {name: each for name, each in found.items() if each.of_row}
    if not usable:
        return next(iter(found.values()), Splits())
    first, *others = usable
    for other in others:
        if usable[other].of_row != usable[first].of_row:
            raise UserError(f"{source}: the columns {first} and {other} name different splits: rename one")
    return usable[first]


def _divides(splits: set[str], blanks: bool) -> bool:
    """Whether a column divides the rows, whatever it is called: into train and others, or into a split and blanks.

    A column with blanks that says the same of all other rows, such as "test", means these rows only.
    """
    named = splits - {""}
    return ("train" in named and len(named & {*SPLITS}) > 1) or (
        blanks and bool(named) and named <= {*SPLITS}
    )


def _allude_to_several(cells: set[str]) -> bool:
    """Whether each of a few texts has the name of a split in it, and not all the same: Training, PublicTest."""
    if not 1 < len(cells) <= MOST_NAMES:
        return False
    alluded = [_alluded(cell) for cell in cells]
    return all(alluded) and len(set().union(*alluded)) > 1


def _read(name: str, cells: list[str], source: str) -> Splits:
    """The splits that the cells of a column name; none, with a note, if no cell names one."""
    known = splits_by_name(set(cells))
    values = [known.get(cell, cell) for cell in cells]
    wrong = [i for i, cell in enumerate(cells) if cell not in known]
    if not wrong:
        return Splits(values, f"split column {name}")
    shown = f"the first says {cells[wrong[0]]!r}" if cells[wrong[0]] else "the first is empty"
    if len(wrong) < len(values):
        numbers = ", ".join(str(i + 1) for i in wrong[:5]) + (", …" if len(wrong) > 5 else "")
        problem = f"{len(wrong)} of {len(values)} rows have no split in the column {name} (row {numbers})"
        raise UserError(f"{source}: {problem}; {shown}: {ADVICE}")
    if any(map(_alluded, set(cells))):
        raise UserError(
            f"{source}: the column {name} holds other names than train, val and test; {shown}: {ADVICE}"
        )
    note = f"column {name}: no split, its values are not train, val or test, such as {cells[0]!r}"
    folds = "fold" in name.lower() and all(cell.lstrip("-").isdecimal() for cell in cells if cell)
    warning = "" if folds or not any(cells) else f"{source}: {note}; all rows are used"
    return Splits(warning=warning, none=note)


def _alluded(text: str) -> set[str]:
    """The splits whose names are words of a text, as in "test set", "train_1" or "isTrain", or shortened to "te"."""
    if abbreviated := ABBREVIATIONS.get(text.strip().lower()):
        return {abbreviated}
    words = re.findall(r"[^\W\d_A-Z]+|[A-Z]+(?![a-z])|[A-Z][a-z]*", text)
    return {SYNONYMS[word.lower()] for word in words if word.lower() in SYNONYMS}


def _cell(value: object) -> str:
    try:
        return text(value)
    except UserError:
        return f"{value!r:.60}"
