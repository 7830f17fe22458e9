"""Detect which columns of a table hold the image, the caption and the label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tracer.core.errors import UserError, unknown
from tracer.data.options import Options

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


@dataclass(frozen=True)
class Columns:
    """The names of the columns in use; None if there is no such column."""

    image: str
    caption: str | None = None
    label: str | None = None

    @property
    def detected(self) -> tuple[str, ...]:
        roles = {"image": self.image, "caption": self.caption, "label": self.label}
        return tuple(f"{role} column: {name}" for role, name in roles.items() if name is not None)


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
    embedded = None if options.image else _column(binary, None, IMAGE)
    image = image or embedded or _column(names, options.image, IMAGE)
    if image is None and len(binary) == 1:
        image = binary[0]
    if image is None:
        raise UserError(
            f"{source} has no column that looks like an image path: its columns are {_join(names)}; "
            "name the right one with --image-column"
        )
    plain = [name for name in names if name not in binary]
    caption, label = _column(plain, options.caption, CAPTION), _column(plain, options.label, LABEL)
    if caption is None and label is None and NONE not in (options.caption, options.label):
        raise UserError(
            f"{source} has no column that looks like a caption or a label: its columns are {_join(names)}; "
            "name one with --caption-column or --label-column"
        )
    return Columns(image, caption, label)


def count_known_names(names: Sequence[str]) -> int:
    """How many of the names are known column names."""
    return sum(_normalise(name) in KNOWN for name in names)


def split_column(names: Sequence[str]) -> str | None:
    """The column that says which split a row belongs to."""
    return _column(names, None, SPLIT)


def _column(names: Sequence[str], requested: str | None, candidates: Sequence[str]) -> str | None:
    if requested is not None:
        if requested in names:
            return requested
        if requested == NONE:
            return None
        raise unknown("column", requested, names)
    normalised = {_normalise(name): name for name in reversed(names)}
    return next((normalised[name] for name in candidates if name in normalised), None)


def _normalise(name: str) -> str:
    return "_".join(name.lower().replace("-", " ").replace("_", " ").split())


def _join(names: Sequence[str], limit: int = 12) -> str:
    shown = ", ".join(repr(name) for name in names[:limit])
    return f"{shown} and {len(names) - limit} more" if len(names) > limit else shown or "(none)"
