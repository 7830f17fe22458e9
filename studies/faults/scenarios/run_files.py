"""Descriptions, logs and manifests of runs, states of sweeps: mutated and damaged, under hypothesis."""

from __future__ import annotations

from collections.abc import Iterator

from studies.faults.parsers import parser_trials, run_parsers
from studies.faults.verdict import Verdict
from studies.faults.workspace import Workspace


def trials(workspace: Workspace) -> Iterator[Verdict]:
    """Every parser returns a correct result or raises UserError."""
    return parser_trials(workspace, run_parsers)
