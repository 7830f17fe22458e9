"""Class names, templates, idx files and NumPy archives of arbitrary bytes, under hypothesis."""

from __future__ import annotations

from collections.abc import Iterator

from studies.faults.parsers import name_parsers, parser_trials
from studies.faults.verdict import Verdict
from studies.faults.workspace import Workspace


def trials(workspace: Workspace) -> Iterator[Verdict]:
    """Every parser returns a correct result or raises UserError."""
    return parser_trials(workspace, name_parsers)
