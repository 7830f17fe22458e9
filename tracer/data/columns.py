"""Which column of a table holds the image, the caption and the label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tracer.core.errors import UserError, unknown
from tracer.data.options import Options

NONE = "none"  # said instead of a column: do not use any

# Names people give to such columns, the clearest first.
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


@dataclass(frozen=True)
class Columns:
    """The columns in use; None where there is nothing of the kind."""

    image: str
    caption: str | None = None
    label: str | None = None

    @property
    def detected(self) -> tuple[str, ...]:
        roles = {"image": self.image, "caption": self.caption, "label": self.label}
        return tuple(f"{role} column: {name}" for role, name in roles.items() if name is not None)


def columns(names: Sequence[str], options: Options, source: str, *, image: str | None = None) -> Columns:
    """The columns as told by the options, else by their names; `image` where that one is already known."""
    image = image or _column(names, options.image, IMAGE)
    if image is None:
        raise UserError(
            f"{source} has no column that looks like an image path: its columns are {_listed(names)}; "
            "name the right one with --image-column"
        )
    caption, label = _column(names, options.caption, CAPTION), _column(names, options.label, LABEL)
    if caption is None and label is None and NONE not in (options.caption, options.label):
        raise UserError(
            f"{source} has no column that looks like a caption or a label: its columns are {_listed(names)}; "
            "name one with --caption-column or --label-column"
        )
    return Columns(image, caption, label)


def recognised(names: Sequence[str]) -> int:
    """How many of the names are ones that we would look for."""
    return sum(_plain(name) in {*IMAGE, *CAPTION, *LABEL, *SPLIT} for name in names)


def split_column(names: Sequence[str]) -> str | None:
    """The column that says which split a row belongs to."""
    return _column(names, None, SPLIT)


def _column(names: Sequence[str], told: str | None, likely: Sequence[str]) -> str | None:
    if told is not None:
        if told in names:
            return told
        if told == NONE:
            return None
        raise unknown("column", told, names)
    plain = {_plain(name): name for name in reversed(names)}
    return next((plain[name] for name in likely if name in plain), None)


def _plain(name: str) -> str:
    return "_".join(name.lower().replace("-", " ").replace("_", " ").split())


def _listed(names: Sequence[str], most: int = 12) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown or "(none)"
