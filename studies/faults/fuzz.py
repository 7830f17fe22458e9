"""Fuzz a parser with hypothesis: it must return a correct result or raise UserError, never another exception."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from studies.faults.verdict import Verdict, lost, refused, survived
from tracer.core.errors import UserError


class Parser(NamedTuple):
    """A parser of foreign input, the inputs to try, and a check of what it returns."""

    name: str
    inputs: st.SearchStrategy[Any]
    probe: Callable[[Any], None]  # raises UserError to refuse, AssertionError where the result is wrong
    tries: tuple[int, int] = (30, 1000)  # quick, full


def fuzzed(parser: Parser, tries: int, seed_value: int) -> Iterator[Verdict]:
    """One verdict for each input tried; hypothesis shrinks an input that breaks the parser."""
    verdicts: list[Verdict] = []

    def probe(value: Any) -> None:
        try:
            parser.probe(value)
        except UserError as error:
            empty = not str(error).strip()
            verdicts.append(lost(parser.name, "refused without a message") if empty else refused(parser.name))
            return
        verdicts.append(survived(parser.name))

    quiet = settings(
        max_examples=tries,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
    try:
        seed(seed_value)(quiet(given(parser.inputs)(probe)))()
    except Exception as error:  # noqa: BLE001  (any exception counts as a lost input)
        notes = " ".join(getattr(error, "__notes__", []))
        verdicts.append(lost(parser.name, f"{type(error).__name__}: {error} {notes}"[:1500]))
    yield from verdicts
