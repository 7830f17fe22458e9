"""Disk full: at the n-th fsync, rename or mkdir, above a file size limit, and on a real small disk."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from pathlib import Path

from studies.faults.injection import BROKEN, FULL, on_call, os_error
from studies.faults.mount import disk
from studies.faults.process import Exit, run_command
from studies.faults.verdict import Verdict, lost, survived
from studies.faults.workspace import Workspace, difference, file_hash, file_hashes

LARGE = 1 << 16  # kilobytes, enough for everything


def trials(workspace: Workspace) -> Iterator[Verdict]:
    """The command fails with a clear error; once there is room it resumes and ends in the same bits."""
    for _ in range(workspace.count(2, 24)):
        call, number = workspace.rng.choice(("fsync", "replace", "mkdir")), workspace.rng.randint(1, 25)
        error = workspace.rng.choice((FULL, FULL, BROKEN))
        what = f"train: error {error} from {call} number {number} on"
        yield _train(workspace, what, lambda c=call, n=number, e=error: on_call(n, os_error(e), c))
    for _ in range(workspace.count(1, 8)):
        size = round(1024 * 2 ** workspace.rng.uniform(-1, 10))
        yield _train(workspace, f"train: no file above {size} bytes", lambda s=size: _limit(s))
    for _ in range(workspace.count(1, 16)):
        yield from _small_disk(workspace, round(2 ** workspace.rng.uniform(3, 13)))
    for _ in range(workspace.count(1, 10)):
        yield from _other_commands(workspace)


def _limit(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def _train(workspace: Workspace, what: str, inject: Callable[[], object]) -> Verdict:
    place = workspace.new_path("full")
    first = workspace.train_or_resume(place, inject=inject)
    return _judged(workspace, what, place, first, lambda: workspace.train_or_resume(place))


def _judged(workspace: Workspace, what: str, place: Path, first: Exit, again: Callable[[], Exit]) -> Verdict:
    if first.code and not first.clear_error:
        return lost(what, first.tail)
    second = again() if first.code else first
    if second.code:
        return lost(what, f"after making room: {second.tail}")
    wrong = difference(place, workspace.finished_run)
    return lost(what, wrong) if wrong else survived(what)


def _small_disk(workspace: Workspace, kilobytes: int) -> Iterator[Verdict]:
    with disk(workspace.new_path("disk"), kilobytes) as small:
        if small is None:
            return
        place = small.place / "run"
        first = workspace.train_or_resume(place)
        small.resize(LARGE)
        what = f"train: a disk of {kilobytes} KiB"
        yield _judged(workspace, what, place, first, lambda: workspace.train_or_resume(place))


def _other_commands(workspace: Workspace) -> Iterator[Verdict]:
    kilobytes = round(2 ** workspace.rng.uniform(2, 8))
    with disk(workspace.new_path("disk"), kilobytes) as small:
        if small is None:
            return
        export, pack = small.place / "export", small.place / "packed.tar"
        for out, arguments in (
            (export, ["export", str(workspace.finished_run), "--out", str(export)]),
            (pack, ["pack", str(workspace.photos), "--lossless", "--out", str(pack)]),
        ):
            what = f"{arguments[0]}: a disk of {kilobytes} KiB"
            first = run_command(arguments)
            if first.code and (not first.clear_error or out.exists()):
                yield lost(what, f"{first.tail}, output left behind: {out.exists()}")
                continue
            small.resize(LARGE)
            second = run_command(arguments) if first.code else first
            reference = workspace.new_path(f"reference/{out.name}")  # a model card names its folder
            run_command([*arguments[:-1], str(reference)])
            same = (
                file_hash(out) == file_hash(reference)
                if out.is_file()
                else file_hashes(out) == file_hashes(reference)
            )
            small.resize(kilobytes)
            yield survived(what) if not second.code and same else lost(what, second.tail)
