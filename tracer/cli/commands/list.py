"""List what is available: `tracer list methods|models|kernels|regularizers|suites`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from typing import Annotated

import tyro

from tracer.cli.flags import cli
from tracer.core.errors import unknown
from tracer.core.kernels import KERNELS
from tracer.core.regularizers import REGULARIZERS
from tracer.evaluation.suites import EMBEDDED, SUITES
from tracer.methods.catalogue import COLUMNS, RECOMMENDATION, entries
from tracer.models.download import Download
from tracer.models.open_clip_compat import open_clip
from tracer.models.registry import known_models, shipped_models
from tracer.terminal import console, show_table

WIDTH = 80
DEFAULT_MODEL = "ViT-B-16"


def main(arguments: list[str]) -> int:
    def show(
        what: Annotated[str, tyro.conf.Positional] = "methods", like: str = "", long: bool = False
    ) -> int:
        """List the names that the command line accepts.

        Args:
            what: methods, models, kernels, regularizers or suites.
            like: only names that contain this.
            long: of methods and models: everything that is known, in a table as wide as it needs.
        """
        if what not in LISTS:
            raise unknown("list", what, LISTS)
        columns, rows = LISTS[what](long)
        rows = [row for row in rows if like.lower() in row[0].lower()]
        if what in BEFORE and not long:
            console.print(f"{BEFORE[what]}\n", highlight=False, markup=False)
            _lines(rows)
        else:
            show_table(what, columns, rows)
        return 0

    return cli(show, arguments, "tracer list")


Listing = tuple[Sequence[str], Sequence[Sequence[str]]]


def _lines(rows: Sequence[Sequence[str]]) -> None:
    """One line a row, cut at 80 columns."""
    widths = [max((len(cell) for cell in column), default=0) for column in zip(*rows, strict=True)]
    for row in rows:
        line = "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        line = line if len(line) <= WIDTH else f"{line[: WIDTH - 1].rstrip()}…"
        console.print(line, highlight=False, markup=False)


def _methods(long: bool) -> Listing:
    return COLUMNS, [entry if long else (entry.name, entry.summary) for entry in entries()]


def _models(long: bool) -> Listing:
    """Models that work here and now come first, then those whose weights must be downloaded, then the rest."""
    rows = [(name, _state(name), _tags(name, long)) for name in known_models()]
    rows.sort(key=lambda row: (STATES.index(row[1]), row[0] != DEFAULT_MODEL))
    return ("name", "state", "weights"), rows


STATES = ("ready", "random weights", "needs a download", "needs transformers", "architecture only")


def _state(name: str) -> str:
    """Whether a model works here now, and if not, what it needs."""
    config = open_clip.get_model_config(name) or {}
    tags = open_clip.list_pretrained_tags_by_model(name)
    text = config.get("text_cfg", {})
    if ("hf_model_name" in text or "hf_tokenizer_name" in text) and find_spec("transformers") is None:
        return "needs transformers"
    if any(Download(name, tag).cached for tag in tags):
        return "ready"
    if tags:
        return "needs a download"
    return "random weights" if name in shipped_models() else "architecture only"


def _tags(name: str, long: bool) -> str:
    """Tags of the weights; in a short list OpenAI's or the first, and how many there are beside."""
    tags = open_clip.list_pretrained_tags_by_model(name)
    if long or len(tags) < 2:
        return ", ".join(tags)
    first = "openai" if "openai" in tags else tags[0]
    return f"{first} +{len(tags) - 1}"


def _named(things: Iterable[tuple[str, object]]) -> list[tuple[str, str]]:
    return [(name, (thing.__doc__ or "").splitlines()[0]) for name, thing in things]


def _regularizers(long: bool) -> Listing:
    del long
    return ("name", "what it does"), _named(REGULARIZERS.items())


def _kernels(long: bool) -> Listing:
    del long
    return ("name", "density"), _named(KERNELS.items())


def _suites(long: bool) -> Listing:
    del long
    return ("name", "needs", "what is in it"), [
        (name, "nothing" if name in EMBEDDED else "--root FOLDER", summary)
        for name, summary in _named(SUITES.items())
    ]


LISTS: dict[str, Callable[[bool], Listing]] = {
    "methods": _methods,
    "models": _models,
    "kernels": _kernels,
    "regularizers": _regularizers,
    "suites": _suites,
}
BEFORE = {
    "methods": f"{RECOMMENDATION}\n\n"
    "All methods (`tracer train METHOD --help` explains one; --long: papers, costs):",
    "models": f"Start with {DEFAULT_MODEL}, the default; tiny-28 and tiny-32 are for trying things out.\n"
    "ready: weights are on this machine; needs a download: from the network, once;\n"
    "needs transformers: pip install transformers; random weights: --pretrained none.\n"
    "--like NAME filters, --long shows every tag.",
}
