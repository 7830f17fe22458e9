"""List what is available: `tracer list methods|models|kernels|regularizers|suites`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import tyro

from tracer.core.errors import unknown
from tracer.core.kernels import KERNELS
from tracer.core.regularizers import REGULARIZERS
from tracer.evaluation.suites import EMBEDDED, SUITES
from tracer.methods.catalogue import COLUMNS, entries
from tracer.models.open_clip_compat import open_clip
from tracer.models.registry import known_models
from tracer.terminal import show_table


def main(arguments: list[str]) -> int:
    def show(what: Annotated[str, tyro.conf.Positional] = "methods", like: str = "") -> int:
        """List the names that the command line accepts.

        Args:
            what: methods, models, kernels, regularizers or suites.
            like: only names that contain this.
        """
        if what not in LISTS:
            raise unknown("list", what, LISTS)
        columns, rows = LISTS[what]()
        show_table(what, columns, [row for row in rows if like.lower() in row[0].lower()])
        return 0

    return tyro.cli(show, args=arguments, prog="tracer list")


Listing = tuple[tuple[str, ...], list[tuple[str, ...]]]


def _methods() -> Listing:
    return COLUMNS[:-1], [
        entry[:-1] for entry in entries()
    ]  # without the description, which --help of a method shows


def _regularizers() -> Listing:
    return ("name", "what it does"), [
        (name, (regularizer.__doc__ or "").splitlines()[0]) for name, regularizer in REGULARIZERS.items()
    ]


def _models() -> Listing:
    rows = [(name, ", ".join(open_clip.list_pretrained_tags_by_model(name))) for name in known_models()]
    return ("name", "weights"), rows


def _kernels() -> Listing:
    return ("name", "density"), [
        (name, (kernel.__doc__ or "").splitlines()[0]) for name, kernel in KERNELS.items()
    ]


def _suites() -> Listing:
    return ("name", "needs", "what is in it"), [
        (name, "nothing" if name in EMBEDDED else "--root FOLDER", (build.__doc__ or "").splitlines()[0])
        for name, build in SUITES.items()
    ]


LISTS: dict[str, Callable[[], Listing]] = {
    "methods": _methods,
    "models": _models,
    "kernels": _kernels,
    "regularizers": _regularizers,
    "suites": _suites,
}
