"""The list of methods, with the cost of each, for `tracer list methods` and docs/methods.md."""

from __future__ import annotations

import inspect
from typing import NamedTuple

from tracer.core.markdown import markdown_table
from tracer.core.regularizers import REGULARIZERS
from tracer.methods.base import Method, Option, Stage, method, methods, options, summary


class Entry(NamedTuple):
    """One row of the list."""

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
    "main settings",
    "what it does",
)

# What to try first: a method, and the data that it is for.
RECOMMENDED = {
    "lipsum": "class labels, and a model that knows the classes at least in part",
    "lpft": "class labels, and a model that knows little of them",
    "tracer": "captions, or whenever text and images must stay comparable",
}
RECOMMENDATION = "\n".join(
    [
        "Start with",
        *(f"  {name:9} {purpose}" for name, purpose in RECOMMENDED.items()),
        "Evidence: EmojiShift (docs/emojishift.md), with a CLIP of 5.8 M parameters at 32",
        "pixels; at the size of ViT-B-16 nobody has compared them here. Learning rate and",
        "`tracer merge --wise` often matter more than the method.",
    ]
)


class Cost(NamedTuple):
    """The cost beyond plain finetuning: additional forwards per step, and additional copies of the weights."""

    forwards: tuple[str, ...]
    copies: int


def cost(method: Method) -> Cost:
    """The cost of the most expensive stage; each replica adds a student."""
    costs = [_stage_cost(stage) for stage in method.stages]
    highest = max(costs, key=lambda each: (len(each.forwards), each.copies), default=Cost((), 0))
    copies = max((each.copies for each in costs), default=0)
    if method.replicas is None:
        return Cost(highest.forwards, copies)
    more = method.replicas.count - 1
    return Cost((*highest.forwards, f"{more} more student{'s' * (more > 1)}"), copies + more + 1)  # and θ₀


def _stage_cost(stage: Stage) -> Cost:
    needs = stage.objective.needs
    forwards = []
    if "teacher" in needs:
        forwards.append("teacher on images")
        if "text" in needs:
            forwards.append("teacher on texts")
    if "probe" in needs and stage.probe is not None and stage.probe.drawn:
        forwards.append("student and teacher on probe texts")
    if "anchors" in needs:
        forwards.append("student on anchor pairs")
    copies = (stage.teacher is not None) + (stage.regularizer.copies if stage.regularizer else 0)
    return Cost(tuple(forwards), copies)


def entries() -> list[Entry]:
    """Every method, by name."""
    return [_entry(name) for name in methods()]


def page(text: str) -> str:
    """The text of docs/methods.md, with the parts between `<!-- NAME -->` and `<!-- /NAME -->` written anew."""
    parts = {
        "table": [_table()],
        "recommended": [f"- `{name}`: {purpose};" for name, purpose in RECOMMENDED.items()],
        "regularizers": [_regularizer(name) for name in REGULARIZERS],
        "options": [_section(name) for name in methods()],
    }
    for name, lines in parts.items():
        begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        before, _, rest = text.partition(begin)
        content = "\n".join(lines).strip()
        text = f"{before}{begin}\n\n{content}\n\n{end}{rest.partition(end)[2]}"
    return text


def _entry(name: str) -> Entry:
    each = method(name)
    forwards, copies = cost(each)
    return Entry(
        name,
        each.title,
        str(each.year or ""),
        each.paper,
        ", ".join(forwards) or "none",
        str(copies),
        ", ".join(each.matter),
        summary(name),
    )


def _table() -> str:
    rows = (entry._replace(paper=_link(entry.paper)) for entry in entries())
    return markdown_table(COLUMNS, rows, align_right=False)


def _link(paper: str) -> str:
    kind, _, key = paper.partition(":")
    sites = {"arXiv": "https://arxiv.org/abs/", "openreview": "https://openreview.net/forum?id=", "ours": ""}
    return f"[{paper}]({sites[kind]}{key})" if kind in sites else paper


def _regularizer(name: str) -> str:
    text = (inspect.getdoc(REGULARIZERS[name]) or "").replace("\n\n", "\n").replace("\n", " ")
    return f"- `{name}`: {text}"


def _section(name: str) -> str:
    """A method's docstring, with its arguments as a list."""
    text = (inspect.getdoc(methods()[name]) or "").partition("\nArgs:")[0].strip()
    lines = [f"### {name}\n", text.replace("|", r"\|"), ""]
    return "\n".join([*lines, *(_option(option) for option in options(name)), ""])


def _option(option: Option) -> str:
    default = repr(option.default) if isinstance(option.default, str) else f"{option.default}"
    return f"- `--{option.name.replace('_', '-')}` (default {default}): {option.help}"
