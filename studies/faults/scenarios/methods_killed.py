"""SIGKILL in training with every method, with workers, --every, --chunk, regularizers and captions; bits compared."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from studies.faults.injection import kill_self, on_call
from studies.faults.process import Exit, run_command
from studies.faults.verdict import Verdict, lost, survived
from studies.faults.workspace import Workspace, difference
from tracer.methods.base import methods, options

STEPS = 6
DURABLE = ("fsync", "replace", "mkdir")
MOST = 25  # durable calls of a whole run, about

# Options of the loop and of the machine, each with a method that they matter to. Adapters belong here.
VARIANTS: dict[str, tuple[str, dict[str, object]]] = {
    "two workers": ("tracer", {"workers": 2}),
    "the teacher every 2 steps": ("tracer", {"every": 2}),
    "the teacher every 3 steps, two workers": ("ema_sd", {"every": 3, "workers": 2}),
    "chunks": ("tracer", {"chunk": 3}),
    "chunks and --every": ("tracer", {"chunk": 4, "every": 2}),
    "l2sp": ("flyp", {"regularizer": "l2sp:0.1"}),
    "ftp": ("flyp", {"regularizer": "ftp"}),
    "spd": ("tracer", {"regularizer": "spd:1"}),
    "augmentation": ("tracer", {"augment": "crop"}),
    "retention of emoji": ("flyp", {"retain": None}),
    "captions": ("tracer", {"data": "pairs"}),
    "a save every step": ("tracer", {"save_every": 1}),
}


def trials(workspace: Workspace) -> Iterator[Verdict]:
    """Each run is killed at random points, again and again, resumed, and compared with an undisturbed one."""
    settings = {name: (name, {}) for name in methods()} | VARIANTS
    for title in workspace.sample(1, settings):
        method, flags = settings[title]
        yield from _killed(workspace, title, method, flags)


def _killed(workspace: Workspace, title: str, method: str, flags: dict[str, object]) -> Iterator[Verdict]:
    whole = workspace.new_path("whole")
    first = _start(workspace, whole, method, flags)
    if first.code:
        yield lost(title, first.tail)
        return
    target, done, calls = workspace.count(2, 10), 0, _calls(whole)
    for _ in range(3 * target):
        if done >= target:
            return
        run = workspace.new_path("killed")
        kills: list[str] = []
        wrong = ""
        for _ in range(6):
            number = workspace.rng.randint(1, max(3, calls))
            result = _start(workspace, run, method, flags, kill_at=number)
            if not result.killed:
                wrong = result.tail if result.code else ""
                break
            kills.append(f"{title}: durable call {number}")
        if not (run / "result.json").exists() and not wrong:
            result = _start(workspace, run, method, flags)
            wrong = result.tail if result.code else ""
        wrong = wrong or difference(run, whole)
        done += len(kills)
        yield from (lost(kill, wrong) if wrong else survived(kill) for kill in kills)
        if wrong and not kills:
            yield lost(title, wrong)


def _calls(run: Path) -> int:
    """About how many durable calls the run made: a few for each of its files."""
    return min(MOST, 2 * sum(1 for file in run.rglob("*") if file.is_file()) + STEPS)


def _start(
    workspace: Workspace, out: Path, method: str, flags: dict[str, object], kill_at: int | None = None
) -> Exit:
    """Start the run, or resume it if it was started, and kill it at a durable call."""
    kill = None if kill_at is None else lambda: on_call(kill_at, kill_self, *DURABLE)
    if (out / "experiment.json").exists():
        saving, workers = flags.get("save_every", 2), flags.get("workers", 0)
        words = ["--save-every", str(saving), "--workers", str(workers), "--device", "cpu"]
        return run_command(["resume", str(out), *words], inject=kill)
    given = {"steps": STEPS, **flags}
    if given.pop("data", None):
        given["data"] = workspace.pairs
    train, *rest = workspace.train_arguments(out, **given)  # pyright: ignore[reportArgumentType]
    if "anchors" in {option.name for option in options(method)}:
        rest += ["--anchors", str(workspace.pairs)]
    return run_command([train, method, *rest], inject=kill)
