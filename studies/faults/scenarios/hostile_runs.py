"""Run folders of strangers: links that lead out, hostile names, and descriptions that name other files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from studies.faults.process import run_command
from studies.faults.verdict import Verdict, judged, lost, refused, survived
from studies.faults.workspace import Workspace, difference, file_hashes
from tracer.runs.run import Run
from tracer.storage.lock import lock

LINKS = (".lock", "log.jsonl", "weights", "resume", "result.json", "predictions", "merges")
NAMES = (
    "a b",
    "a;b",
    "a'b",
    'a"b',
    "a\nb",
    "a\x1b[31mb",
    "<b>",
    "$(touch ran)",
    "--out",
    "é",
    "a|b",
    "a\\b",
    "[red]",
)


def trials(workspace: Workspace) -> Iterator[Verdict]:
    """Nothing outside is changed; a run is resumed to the same bits whatever its folder is called."""
    outside = workspace.new_path("outside")
    (outside / "step-000000001").mkdir(parents=True)
    (outside / "secret").write_text("a secret")
    for name in workspace.sample(2, LINKS):
        for target in (outside, outside / "secret", outside / "new"):
            run = workspace.copy(workspace.stopped_run, "linked")
            yield _linked(workspace, run, name, target, outside)
    for name in workspace.sample(1, NAMES):
        run = workspace.copy(workspace.stopped_run, f"{name}")
        result = workspace.train_or_resume(run)
        steering = [each for each in result.output if not each.isprintable() and each not in "\n\t"]
        wrong = result.tail if result.code else difference(run, workspace.finished_run)
        wrong = wrong or (f"{steering[0]!r} was printed" if steering else "")
        yield lost(f"{name!r}", wrong) if wrong else survived(f"{name!r}")
    for number in range(workspace.count(20, 1000)):
        yield judged(f"lock {number}", partial(_locked, workspace, number))


def _linked(workspace: Workspace, run: Path, name: str, target: Path, outside: Path) -> Verdict:
    what, place = f"{name} links to {target.name}", run / name
    if place.is_dir():
        place.rename(run / f"real-{name}")
    place.unlink(missing_ok=True)
    place.symlink_to(target)
    before = file_hashes(outside)
    result = run_command(["resume", str(run), "--save-every", "2", "--workers", "0", "--device", "cpu"])
    if file_hashes(outside) != before or not (outside / "step-000000001").is_dir():
        return lost(what, "something outside was changed")
    if "Traceback" in result.output:
        return lost(what, result.tail)
    return refused(what) if result.clear_error else survived(what)


def _locked(workspace: Workspace, number: int) -> None:
    """Whatever a lock file holds, one holder at a time, and the next one afterwards."""
    folder = workspace.folder / "trials" / "locks"
    folder.mkdir(exist_ok=True)
    path = folder / ".lock"
    path.write_bytes(workspace.rng.randbytes(number % 50))
    content = path.read_bytes()
    with lock(path) as first, lock(path) as second:
        assert first
        assert not second
    with lock(path) as again:
        assert again
    assert path.read_bytes() == content, "the content of the lock file was changed"
    description = {"id": "x", "experiment": {"data": f"../{number}"}, "classes": []}
    (folder / "experiment.json").write_text(json.dumps(description))
    assert Run.open(folder).experiment.data == f"../{number}"
