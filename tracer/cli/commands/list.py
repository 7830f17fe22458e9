"""List methods, models, kernels and test suites: `tracer list`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec

from tracer.api.terminal import say, show_table
from tracer.cli.flags import command
from tracer.core.errors import unknown
from tracer.core.kernels import KERNELS
from tracer.core.regularizers import REGULARIZERS
from tracer.evaluation.suites import EMBEDDED, SUITES
from tracer.methods.catalogue import COLUMNS, RECOMMENDATION, entries
from tracer.models.download import Download, text_files_missing
from tracer.models.huggingface.source import cached_repositories
from tracer.models.open_clip_compat import open_clip
from tracer.models.registry import known_models, shipped_models

WIDTH = 80
RECOMMENDED = ("ViT-B-16", "ViT-B-32", "ViT-L-14")  # the default, a faster and a larger one


@command("tracer list")
def main(what: str = "methods", /, like: str = "", long: bool = False) -> int:
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
        say(f"{BEFORE[what]}\n")
        _lines(rows)
    else:
        show_table(what, columns, rows)
    return 0


Listing = tuple[Sequence[str], Sequence[Sequence[str]]]


def _lines(rows: Sequence[Sequence[str]]) -> None:
    """One line a row, cut at 80 columns."""
    widths = [max((len(cell) for cell in column), default=0) for column in zip(*rows, strict=True)]
    for row in rows:
        line = "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        line = line if len(line) <= WIDTH else f"{line[: WIDTH - 1].rstrip()}…"
        say(line)


def _models(long: bool) -> Listing:
    """Models that work here and now come first, then what needs a download, an extra, or has no weights.

    Among equals the recommended ones come first. Models of transformers are listed if they are on this machine.
    """
    rows = [(name, _state(name), _tags(name, long)) for name in known_models()]
    rows += [(f"hf-hub:{name}", "ready", "its own") for name in cached_repositories() if _transformers()]
    rank = {name: position for position, name in enumerate(RECOMMENDED)}
    rows.sort(key=lambda row: (STATES.index(row[1]), rank.get(row[0], len(rank))))
    return ("name", "state", "weights"), rows


STATES = ("ready", "random weights", "needs a download", "needs the extra hf", "architecture only")


def _transformers() -> bool:
    return find_spec("transformers") is not None


def _state(name: str) -> str:
    """Whether a model works here now, and if not, what it needs."""
    config = open_clip.get_model_config(name) or {}
    tags = open_clip.list_pretrained_tags_by_model(name)
    text = config.get("text_cfg", {})
    if ("hf_model_name" in text or "hf_tokenizer_name" in text) and not _transformers():
        return "needs the extra hf"
    if any(Download(name, tag).cached for tag in tags) and not text_files_missing(text):
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


def _suites() -> Listing:
    return ("name", "needs", "what is in it"), [
        (name, "nothing" if name in EMBEDDED else "--root FOLDER", summary)
        for name, summary in _named(SUITES.items())
    ]


LISTS: dict[str, Callable[[bool], Listing]] = {
    "methods": lambda long: (COLUMNS, [each if long else (each.name, each.summary) for each in entries()]),
    "models": _models,
    "kernels": lambda long: (("name", "density"), _named(KERNELS.items())),
    "regularizers": lambda long: (("name", "what it does"), _named(REGULARIZERS.items())),
    "suites": lambda long: _suites(),
}
BEFORE = {
    "methods": f"{RECOMMENDATION}\n\n"
    "All methods (`tracer train METHOD --help` explains one; --long: papers, costs):",
    "models": f"Start with {RECOMMENDED[0]}, the default; {RECOMMENDED[1]} is faster, {RECOMMENDED[2]} larger;\n"
    "tiny-28 and tiny-32 are for trying things out.\n"
    "ready: weights are on this machine; needs a download: from the network, once;\n"
    "needs the extra hf: pip install 'tracer-clip[hf]'; random weights:\n"
    "--pretrained none. Beside these, --model takes a folder or hf-hub:NAME of\n"
    "open_clip or transformers (CLIP, SigLIP, SigLIP2).\n"
    "--like NAME filters, --long shows every tag.",
}
