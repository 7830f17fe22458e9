"""Feed a parser what hypothesis thinks of: a UserError or the right answer, never another exception."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from studies.faults.verdict import Verdict, lost, refused, survived
from tracer.core.errors import UserError


class Parser(NamedTuple):
    """Something that reads what others wrote: what it is given, and what must hold if it accepts it."""

    name: str
    inputs: st.SearchStrategy[Any]
    probe: Callable[[Any], None]  # raises UserError to refuse, AssertionError where an answer is wrong
    tries: tuple[int, int] = (30, 1000)


def fuzzed(parser: Parser, tries: int, luck: int) -> Iterator[Verdict]:
    """A verdict on every input tried; one that breaks the parser is shrunk and told."""
    verdicts: list[Verdict] = []

    def probe(value: Any) -> None:
        try:
            parser.probe(value)
        except UserError as error:
            wordless = not str(error).strip()
            verdicts.append(lost(parser.name, "refused without a word") if wordless else refused(parser.name))
            return
        verdicts.append(survived(parser.name))

    quietly = settings(
        max_examples=tries,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
    try:
        seed(luck)(quietly(given(parser.inputs)(probe)))()
    except Exception as error:  # noqa: BLE001  (the very thing that is looked for)
        notes = " ".join(getattr(error, "__notes__", []))
        verdicts.append(lost(parser.name, f"{type(error).__name__}: {error} {notes}"[:1500]))
    yield from verdicts
