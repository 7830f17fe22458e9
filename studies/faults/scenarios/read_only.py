"""Read-only folders: writes fail from the start, or from the n-th call on."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from studies.faults.injection import DENIED, READ_ONLY, fail_writes, on_call, os_error
from studies.faults.mount import disk
from studies.faults.process import run_command
from studies.faults.verdict import Verdict, lost, refused, survived
from studies.faults.workspace import Workspace, difference, file_hashes

COMMANDS = ("train", "resume", "merge", "export", "pack")


def trials(workspace: Workspace) -> Iterator[Verdict]:
    """Commands that write fail with a clear error and change no file; commands that only read work."""
    for _ in range(workspace.count(1, 16)):
        call, number = workspace.rng.choice(("replace", "mkdir")), workspace.rng.randint(1, 25)
        error = workspace.rng.choice((READ_ONLY, DENIED))
        place, what = workspace.new_path("denied"), f"train: error {error} from {call} number {number} on"
        first = workspace.train_or_resume(
            place, inject=lambda c=call, n=number, e=error: on_call(n, os_error(e), c)
        )
        if first.code and not first.clear_error:
            yield lost(what, first.tail)
            continue
        wrong = workspace.train_or_resume(place).code or difference(place, workspace.finished_run)
        yield lost(what, str(wrong)) if wrong else survived(what)
    for name, error in (("EACCES", DENIED), ("EROFS", READ_ONLY)):
        for command in workspace.sample(1, COMMANDS):
            yield _injected(workspace, command, name, error)
    with disk(workspace.new_path("disk")) as real:
        if real is not None:
            yield from _mounted(workspace, real.place, real.read_only)


def _arguments(workspace: Workspace, command: str, folder: Path) -> list[str]:
    """A command that writes below `folder`, which holds a stopped and a finished run."""
    return {
        "train": workspace.train_arguments(folder / "new"),
        "resume": ["resume", str(folder / "stopped"), "--workers", "0", "--device", "cpu"],
        "merge": ["merge", str(folder / "run"), "--wise", "0:1:0.5", "--device", "cpu"],
        "export": ["export", str(folder / "run"), "--out", str(folder / "export")],
        "pack": ["pack", str(workspace.photos), "--out", str(folder / "packed.tar")],
    }[command]


def _filled(workspace: Workspace, folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(workspace.stopped_run, folder / "stopped")
    shutil.copytree(workspace.finished_run, folder / "run")
    return folder


def _injected(workspace: Workspace, command: str, name: str, error: int) -> Verdict:
    folder = _filled(workspace, workspace.new_path("denied"))
    before, what = file_hashes(folder), f"{command}: {name} for every write"
    result = run_command(_arguments(workspace, command, folder), inject=lambda: fail_writes(folder, error))
    if not result.clear_error:
        return lost(what, result.tail)
    left = {
        name: value for name, value in file_hashes(folder).items() if not name.endswith(".tmp")
    }  # temporary files cannot be removed either
    changed = sorted({name for name, _ in left.items() ^ before.items()})
    return lost(what, f"files have changed: {', '.join(changed)}") if changed else refused(what)


def _mounted(workspace: Workspace, place: Path, freeze: object) -> Iterator[Verdict]:
    folder = _filled(workspace, place / "work")
    before = file_hashes(folder)
    assert callable(freeze)
    freeze()
    for command in workspace.sample(2, COMMANDS):
        result = run_command(_arguments(workspace, command, folder))
        same = file_hashes(folder) == before
        what = f"{command}: a read-only disk"
        yield refused(what) if result.clear_error and same else lost(what, result.tail)
    for what, arguments in (
        (
            "export from a read-only disk",
            ["export", str(folder / "run"), "--out", str(workspace.new_path("exported"))],
        ),
        (
            "eval from a read-only disk",
            ["eval", str(folder / "run"), "--data", str(workspace.photos), "--device", "cpu"],
        ),
    ):
        result = run_command(arguments)
        yield (
            survived(what)
            if result.code == 0 or (result.clear_error and "eval" in what)
            else lost(what, result.tail)
        )
