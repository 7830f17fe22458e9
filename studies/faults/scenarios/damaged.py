"""Truncated, bit-flipped and missing files of checkpoints and runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from studies.faults.process import run_command
from studies.faults.verdict import Verdict, lost, refused, survived
from studies.faults.workspace import STEPS, Workspace, difference, file_hashes
from tracer.core.errors import UserError
from tracer.runs.run import Run

NEWEST = f"resume/step-{STEPS - 2:09d}"


def trials(workspace: Workspace) -> Iterator[Verdict]:
    """A damaged checkpoint is reported and the one before it is used; if all are damaged the run is refused."""
    for file in sorted((workspace.stopped_run / NEWEST).iterdir()):
        for damage in workspace.sample(1, [*DAMAGES, *["a flipped bit"] * 4]):
            yield _newest(workspace, f"{NEWEST}/{file.name}", damage)
    for _ in range(workspace.count(1, 8)):
        yield _all(workspace)
    for name in ("result", "student", "teacher"):
        for damage in workspace.sample(1, [*DAMAGES, *["a flipped bit"] * 4]):
            yield _weights(workspace, name, damage)
    for damage in workspace.sample(2, [*DAMAGES, *["a flipped bit"] * 20]):
        yield _description(workspace, damage)
    for damage in workspace.sample(1, [*DAMAGES, *["a flipped bit"] * 20]):
        yield _result(workspace, damage)


def flipped(content: bytes, rng: Random) -> bytes:
    """The content with one random bit flipped."""
    changed = bytearray(content)
    changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _zeros(content: bytes, rng: Random) -> bytes:
    start = rng.randrange(len(content))
    return content[:start] + bytes(min(512, len(content) - start)) + content[start + 512 :]


DAMAGES: dict[str, Callable[[bytes, Random], bytes | None]] = {
    "a flipped bit": flipped,
    "a cut": lambda content, rng: content[: rng.randrange(len(content))],
    "emptied": lambda content, rng: b"",
    "a block of zeros": _zeros,
    "bytes appended": lambda content, rng: content + rng.randbytes(rng.randint(1, 99)),
    "other bytes": lambda content, rng: rng.randbytes(len(content)),
    "deleted": lambda content, rng: None,
}


def _damage(file: Path, damage: str, rng: Random) -> bool:
    """Damage a file; returns whether that changed anything."""
    before = file.read_bytes()
    after = DAMAGES[damage](before, rng)
    file.unlink() if after is None else file.write_bytes(after)
    return after != before


def _newest(workspace: Workspace, name: str, damage: str) -> Verdict:
    run, what = workspace.copy(workspace.stopped_run, "damaged"), f"{name}: {damage}"
    changed_file = _damage(run / name, damage, workspace.rng)
    result = workspace.train_or_resume(run)
    if result.code:
        return lost(what, result.tail)
    if changed_file and "is damaged" not in result.output:
        return lost(what, "the damage was not reported")
    wrong = difference(run, workspace.finished_run)
    return lost(what, wrong) if wrong else survived(what)


def _all(workspace: Workspace) -> Verdict:
    run = workspace.copy(workspace.stopped_run, "damaged")
    for place in (run / "resume").glob("step-*"):
        file = workspace.rng.choice(sorted(place.iterdir()))
        while not _damage(file, "a flipped bit", workspace.rng):
            pass
    before, result = file_hashes(run / "resume"), workspace.train_or_resume(run)
    clear = (
        result.clear_error
        and "no usable checkpoint" in result.output
        and file_hashes(run / "resume") == before
    )
    return refused("every checkpoint") if clear else lost("every checkpoint", result.tail)


def _weights(workspace: Workspace, name: str, damage: str) -> Verdict:
    """Weights of a finished run have no earlier version to fall back on: they are refused."""
    run, what = workspace.copy(workspace.finished_run, "damaged"), f"weights/{name}.safetensors: {damage}"
    changed_file = _damage(run / "weights" / f"{name}.safetensors", damage, workspace.rng)
    out = workspace.new_path("exported")
    result = run_command(["export", str(run), "--weights", name, "--out", str(out)])
    if not changed_file:
        return survived(what)
    return refused(what) if result.clear_error and not out.exists() else lost(what, result.tail)


def _description(workspace: Workspace, damage: str) -> Verdict:
    run, what = workspace.copy(workspace.stopped_run, "damaged"), f"experiment.json: {damage}"
    changed_file = _damage(run / "experiment.json", damage, workspace.rng)
    resuming = ["resume", str(run), "--save-every", "2", "--workers", "0", "--device", "cpu"]
    result = run_command(resuming)
    if result.clear_error:
        return refused(what)
    wrong = result.tail if result.code else difference(run, workspace.finished_run)
    if not wrong and changed_file:  # accepted: then everything in it must be what was written
        mine, theirs = (Run.open(each).description for each in (run, workspace.stopped_run))
        wrong = ", ".join(name for name in theirs if mine.get(name) != theirs[name])
    return lost(what, wrong) if wrong else survived(what)


def _result(workspace: Workspace, damage: str) -> Verdict:
    """The result of a finished run is read as it was written, or refused."""
    run, what = workspace.copy(workspace.finished_run, "damaged"), f"result.json: {damage}"
    _damage(run / "result.json", damage, workspace.rng)
    if not Run.open(run).finished:
        return survived(what)  # the file is gone, and the run counts as unfinished
    try:
        result = Run.open(run).result
    except UserError:
        return refused(what)
    values = {name: result.get(name) for name in Run.open(workspace.finished_run).result}
    return (
        survived(what)
        if values == Run.open(workspace.finished_run).result
        else lost(what, "the damage was not reported")
    )
