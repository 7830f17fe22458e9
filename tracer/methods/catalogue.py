"""What there is to choose from: one source for `tracer list methods` and docs/methods.md."""

from __future__ import annotations

import inspect
from typing import NamedTuple

from tracer.core.regularizers import REGULARIZERS
from tracer.methods.base import Option, method, methods, options, summary
from tracer.methods.cost import cost


class Entry(NamedTuple):
    """A method as a reader meets it."""

    name: str
    title: str
    year: str
    paper: str
    forwards: str
    copies: str
    matter: str
    summary: str


COLUMNS = (
    "name",
    "method",
    "year",
    "paper",
    "extra forwards",
    "extra copies",
    "what matters",
    "what it does",
)


def entries() -> list[Entry]:
    """Every method, by name."""
    return [_entry(name) for name in methods()]


def page() -> str:
    """docs/methods.md."""
    parts = [HEAD, _table(), TETHERED, *(_regularizer(name) for name in REGULARIZERS), "\n## Options\n"]
    return "\n".join([*parts, *(_section(name) for name in methods())])


def _entry(name: str) -> Entry:
    made = method(name)
    price = cost(made)
    matter = ", ".join(made.matter)
    year = str(made.year or "")
    return Entry(name, made.title, year, made.paper, price.told, str(price.copies), matter, summary(name))


def _table() -> str:
    rows = [
        COLUMNS,
        ("---",) * len(COLUMNS),
        *(entry._replace(paper=_link(entry.paper)) for entry in entries()),
    ]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _link(paper: str) -> str:
    kind, _, key = paper.partition(":")
    places = {"arXiv": "https://arxiv.org/abs/", "openreview": "https://openreview.net/forum?id=", "ours": ""}
    return f"[{paper}]({places[kind]}{key})" if kind in places else paper


def _regularizer(name: str) -> str:
    told = (inspect.getdoc(REGULARIZERS[name]) or "").replace("\n\n", "\n").replace("\n", " ")
    return f"- `{name}`: {told}"


def _section(name: str) -> str:
    """A method's docstring without its arguments, and the arguments as a list."""
    text = (inspect.getdoc(methods()[name]) or "").partition("\nArgs:")[0].strip()
    lines = [f"### {name}\n", text.replace("|", r"\|"), ""]
    return "\n".join([*lines, *(_option(option) for option in options(name)), ""])


def _option(option: Option) -> str:
    default = repr(option.default) if isinstance(option.default, str) else f"{option.default}"
    return f"- `--{option.name.replace('_', '-')}` (default {default}): {option.help}"


HEAD = """\
# Methods

This page is written by the code: `python -m tracer.methods > docs/methods.md`.

Each method is one file in `tracer/methods` and answers five questions: what is minimised, who teaches, what may
move, what holds the weights back, what is kept. The loop, the data and the evaluation are the same for all.
Costs are beyond the student's own forward and backward; a forward is about a third of a training step.
"""

TETHERED = """
## Regularizers

Under any method, `--regularizer` holds the weights to the pretrained ones.
"""
