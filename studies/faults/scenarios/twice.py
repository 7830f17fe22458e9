"""Two processes on one run directory, and locks of dead processes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

from studies.faults.injection import after_rename
from studies.faults.process import CommandProcess, run_command
from studies.faults.verdict import Verdict, lost, refused, survived
from studies.faults.workspace import STEPS, Workspace, difference, file_hashes


def trials(workspace: Workspace) -> Iterator[Verdict]:
    """The second process is refused while the first one lives, and resumes the run once that is dead."""
    for _ in range(workspace.count(1, 8)):
        yield from _second(workspace)
    for content in (b"", b"99999999", b"\0\xff" * 100):
        run = workspace.copy(workspace.stopped_run, "stale")
        (run / ".lock").write_bytes(content)
        what, result = f"the lock of a dead process, {len(content)} bytes", workspace.train_or_resume(run)
        wrong = result.tail if result.code else difference(run, workspace.finished_run)
        yield lost(what, wrong) if wrong else survived(what)
    for _ in range(workspace.count(1, 6)):
        yield _race(workspace)


def _second(workspace: Workspace) -> Iterator[Verdict]:
    """The first process is stopped (SIGSTOP) during its work; a lock that expires would be taken over."""
    run, step = workspace.new_path("shared"), workspace.rng.randrange(2, STEPS, 2)
    first = CommandProcess(
        workspace.train_arguments(run),
        inject=lambda: after_rename(f"step-{step:09d}", lambda: os.kill(os.getpid(), signal.SIGSTOP)),
    )
    if not first.wait_until_stopped():
        yield lost(f"a run to stop at step {step}", "it ended before that step")
        return
    before = file_hashes(run)
    for arguments in (
        ["resume", str(run), "--workers", "0", "--device", "cpu"],
        workspace.train_arguments(run),
    ):
        result, what = run_command(arguments), f"{arguments[0]} beside a run at step {step}"
        same = file_hashes(run) == before
        yield (
            refused(what)
            if result.clear_error and same
            else lost(what, result.tail if same else "files changed")
        )
    first.kill()
    first.wait()
    result, what = workspace.train_or_resume(run), f"resuming after a dead process at step {step}"
    wrong = result.tail if result.code else difference(run, workspace.finished_run)
    yield lost(what, wrong) if wrong else survived(what)


def _race(workspace: Workspace) -> Verdict:
    """Both start at the same moment: one trains, the other is refused."""
    run, what = workspace.new_path("race"), "two processes that start at once"
    processes = [CommandProcess(workspace.train_arguments(run)) for _ in range(2)]
    results = [each.wait() for each in processes]
    done = [result for result in results if result.code == 0]
    if len(done) != 1 or not all(result.clear_error for result in results if result.code):
        return lost(what, " / ".join(result.tail for result in results))
    wrong = difference(run, workspace.finished_run)
    return lost(what, wrong) if wrong else survived(what)
