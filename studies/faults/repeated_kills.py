"""Kill a run again and again, let it finish, and compare it with one that was not disturbed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from studies.faults.injection import kill_self, on_call
from studies.faults.prepared import RUN, PreparedRun, with_prepared
from studies.faults.process import Exit
from studies.faults.verdict import Verdict, lost, survived
from studies.faults.workspace import Workspace, difference
from tracer.methods.base import options

STEPS = 6
DURABLE = ("fsync", "replace", "mkdir")
MOST = 25  # durable calls of a whole run, about
ATTEMPTS = 5  # kills of one run before it may finish


def killed_repeatedly(
    workspace: Workspace, title: str, method: str, flags: dict[str, object]
) -> list[Verdict]:
    """A verdict for each kill of a run of this method, planned once and killed in forked processes."""
    given: dict[str, Any] = {"steps": STEPS, **flags}
    if given.pop("data", None):
        given["data"] = workspace.pairs
    train, *rest = workspace.train_arguments(Path(RUN), **given)[:-2]  # without --out
    if "anchors" in {option.name for option in options(method)}:
        rest += ["--anchors", str(workspace.pairs)]
    arguments = [train, method, *rest]
    tried = with_prepared(
        arguments, workspace.new_path("prepared"), lambda run: _tried(workspace, title, run)
    )
    return [lost(title, tried.tail)] if isinstance(tried, Exit) else tried


def _tried(workspace: Workspace, title: str, prepared: PreparedRun) -> list[Verdict]:
    whole = workspace.new_path("whole")
    first = prepared.train(whole)
    if first.code:
        return [lost(title, first.tail)]
    verdicts: list[Verdict] = []
    target, calls = workspace.count(2, 12), _calls(whole)
    for _ in range(3 * target):
        if len(verdicts) >= target:
            break
        place, kills = workspace.new_path("killed"), list[str]()
        while True:
            number = workspace.rng.randint(1, calls)
            result = prepared.train(place, lambda n=number: on_call(n, kill_self, *DURABLE))
            if not result.killed or len(kills) == ATTEMPTS:
                break
            kills.append(f"{title}: durable call {number}")
        if result.killed:
            result = prepared.train(place)
        wrong = result.tail if result.code else difference(place / RUN, whole / RUN)
        verdicts += [lost(kill, wrong) if wrong else survived(kill) for kill in kills]
        if wrong and not kills:
            verdicts.append(lost(title, wrong))
    return verdicts


def _calls(run: Path) -> int:
    """About how many durable calls the run made: a few for each of its files."""
    return min(MOST, 2 * sum(1 for file in run.rglob("*") if file.is_file()) + STEPS)
