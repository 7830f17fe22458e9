"""SIGKILL in training with every method, in the middle of writing; bits compared."""

from __future__ import annotations

from collections.abc import Iterator

from studies.faults.repeated_kills import killed_repeatedly
from studies.faults.verdict import Verdict
from studies.faults.workspace import Workspace
from tracer.methods.base import methods


def trials(workspace: Workspace) -> Iterator[Verdict]:
    """Each run is killed at random points, again and again, resumed, and compared with an undisturbed one."""
    for name in workspace.sample(1, sorted(methods())):
        yield from killed_repeatedly(workspace, name, name, {})
