"""SIGKILL at random points of train, sweep, merge, export and pack."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from studies.faults.injection import kill_self, on_call
from studies.faults.process import Exit, run_command
from studies.faults.verdict import Verdict, lost, survived
from studies.faults.workspace import Workspace, difference, file_hashes

DURABLE = ("fsync", "replace", "mkdir")  # the system calls that make files durable


class Command(NamedTuple):
    """A command to kill, how often, and how to check its output."""

    name: str
    kills: tuple[int, int]  # quick, full
    attempts: int  # at most so many kills before it may finish
    prepare: Callable[[Workspace, str], Path]
    start: Callable[..., Exit]
    done: Callable[[Path], bool]
    wrong: Callable[[Workspace, Path], str]


def trials(workspace: Workspace) -> Iterator[Verdict]:
    """Kill each command at random moments, let it finish, and compare with an undisturbed run."""
    for command in COMMANDS:
        target, seconds, killed, rounds = workspace.count(*command.kills), _duration(workspace, command), 0, 0
        while killed < target and rounds < 4 * target:
            rounds += 1
            path = command.prepare(workspace, f"killed-{command.name}")
            # A command that random moments have missed is killed at one of its first durable calls.
            kills, wrong = _kill_repeatedly(workspace, command, path, seconds, surely=rounds > target)
            killed += len(kills)
            yield from (lost(kill, wrong) if wrong else survived(kill) for kill in kills)
            if wrong and not kills:
                yield lost(command.name, wrong)
        if killed < target:
            yield lost(command.name, f"killed only {killed} times instead of {target}")


def _duration(workspace: Workspace, command: Command) -> float:
    """How many seconds the undisturbed command takes."""
    return command.start(workspace, command.prepare(workspace, f"killed-{command.name}")).seconds


def _kill_repeatedly(
    workspace: Workspace, command: Command, path: Path, seconds: float, *, surely: bool
) -> tuple[list[str], str]:
    """The kills that hit the running command, and what is wrong with its output afterwards."""
    kills: list[str] = []
    for _ in range(command.attempts):
        if command.done(path):
            break
        if not surely and workspace.rng.random() < 0.5:
            moment = workspace.rng.uniform(0, 1.1 * seconds)
            result, how = (
                command.start(workspace, path, kill_after=moment),
                f"{command.name} after {moment:.3f} s",
            )
        else:
            number = workspace.rng.randint(1, 2 if surely else 30)
            result = command.start(workspace, path, inject=lambda n=number: on_call(n, kill_self, *DURABLE))
            how = f"{command.name} at durable call {number}"
        if result.killed:
            kills.append(how)
        elif result.code:
            return kills, f"{how}: {result.tail}"
    if not command.done(path):
        result = command.start(workspace, path)
        if result.code:
            return kills, result.tail
    return kills, command.wrong(workspace, path)


def _undisturbed(workspace: Workspace, name: str, start: Callable[[Workspace, Path], Exit]) -> Path:
    """The output of the undisturbed command, made once."""
    path = workspace.folder / "trials" / f"undisturbed-{name}"
    if not path.exists():
        result = start(workspace, path)
        assert result.code == 0, result.tail
    return path


def _sweep(workspace: Workspace, path: Path, **how: object) -> Exit:
    worker = ["sweep", f"{workspace.recipe}:tiny", "--out", str(path), "--worker", "--device", "cpu"]
    return run_command(worker, **how)  # pyright: ignore[reportArgumentType]


def _swept(workspace: Workspace, path: Path) -> str:
    reference = _undisturbed(workspace, "sweep", _sweep)
    wrong = [difference(run, reference / run.name) for run in sorted(path.glob("[!.]*"))]
    missing = {run.name for run in reference.glob("[!.]*")} ^ {run.name for run in path.glob("[!.]*")}
    return "; ".join([*filter(None, wrong), *(f"run {name} is missing" for name in missing)])


def _merge(workspace: Workspace, path: Path, **how: object) -> Exit:
    arguments = ["merge", str(path), "--wise", "0:1:0.5", "--name", "mixed", "--device", "cpu"]
    return run_command(arguments, **how)  # pyright: ignore[reportArgumentType]


def _merged(workspace: Workspace, path: Path) -> str:
    reference = _undisturbed(
        workspace,
        "merge",
        lambda workspace, path: _merge(workspace, workspace.copy(workspace.finished_run, path.name)),
    )
    files = {
        "weights/mixed.safetensors",
        *(f"weights/{file.name}" for file in (workspace.finished_run / "weights").iterdir()),
    }
    mine, theirs = file_hashes(path), file_hashes(reference)
    wrong = [name for name in sorted(files) if mine.get(name) != theirs[name]]
    if _merge_record(path) != _merge_record(reference):
        wrong.append("merges/mixed.json")
    return ", ".join(f"{name} differs" for name in wrong)


def _merge_record(run: Path) -> dict[str, Any] | None:
    """The record of a merge without the paths of its runs; None if it cannot be read."""
    try:
        record = json.loads((run / "merges" / "mixed.json").read_text())
    except (OSError, ValueError):
        return None
    return {name: value for name, value in record.items() if name != "runs"}


def _export(workspace: Workspace, path: Path, **how: object) -> Exit:
    return run_command(["export", str(workspace.finished_run), "--out", str(path)], **how)  # pyright: ignore[reportArgumentType]


def _exported(workspace: Workspace, path: Path) -> str:
    reference = _undisturbed(workspace, f"export/{path.name}", _export)  # the model card names its folder
    return "" if file_hashes(path) == file_hashes(reference) else "the exported folders differ"


def _pack(workspace: Workspace, path: Path, **how: object) -> Exit:
    return run_command(["pack", str(workspace.photos), "--out", str(path)], **how)  # pyright: ignore[reportArgumentType]


def _packed(workspace: Workspace, path: Path) -> str:
    reference = _undisturbed(workspace, "pack.tar", _pack)
    return "" if path.read_bytes() == reference.read_bytes() else "the packed files differ"


COMMANDS = (
    Command(
        "train",
        kills=(3, 30),
        attempts=10,
        prepare=Workspace.new_path,
        start=lambda workspace, path, **how: workspace.train_or_resume(path, **how),
        done=lambda path: (path / "result.json").exists(),
        wrong=lambda workspace, path: difference(path, workspace.finished_run),
    ),
    Command(
        "sweep",
        kills=(1, 15),
        attempts=8,
        prepare=Workspace.new_path,
        start=_sweep,
        done=lambda path: len(list(path.glob("*/result.json"))) == 2,
        wrong=_swept,
    ),
    Command(
        "merge",
        kills=(1, 15),
        attempts=6,
        prepare=lambda workspace, name: workspace.copy(workspace.finished_run, name),
        start=_merge,
        done=lambda path: (path / "merges" / "mixed.json").exists(),
        wrong=_merged,
    ),
    Command(
        "export",
        kills=(1, 15),
        attempts=6,
        prepare=lambda workspace, name: workspace.new_path(f"{name}/model"),
        start=_export,
        done=lambda path: path.exists(),
        wrong=_exported,
    ),
    Command(
        "pack",
        kills=(1, 15),
        attempts=6,
        prepare=lambda workspace, name: workspace.new_path(f"{name}.tar"),
        start=_pack,
        done=lambda path: path.exists(),
        wrong=_packed,
    ),
)
