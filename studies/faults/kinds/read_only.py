"""Read-only folders: refused by the system from the start, or from the n-th call on."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from studies.faults.life import live
from studies.faults.mount import disk
from studies.faults.site import Site, difference, tree
from studies.faults.verdict import Verdict, lost, refused, survived
from studies.faults.wounds import DENIED, READ_ONLY, at_call, refuse, refuse_writing

COMMANDS = ("train", "resume", "merge", "export", "pack")


def trials(site: Site) -> Iterator[Verdict]:
    """Clearly refused, nothing spoilt; what only reads works."""
    for _ in range(site.some(1, 16)):
        call, number = site.rng.choice(("replace", "mkdir")), site.rng.randint(1, 25)
        error = site.rng.choice((READ_ONLY, DENIED))
        place, what = site.fresh("denied"), f"train: error {error} from {call} number {number} on"
        first = site.trained(place, wound=lambda c=call, n=number, e=error: at_call(n, refuse(e), c))
        if first.code and not first.clear:
            yield lost(what, first.last_words)
            continue
        wrong = site.trained(place).code or difference(place, site.run)
        yield lost(what, str(wrong)) if wrong else survived(what)
    for name, error in (("EACCES", DENIED), ("EROFS", READ_ONLY)):
        for command in site.few(1, COMMANDS):
            yield _injected(site, command, name, error)
    with disk(site.fresh("disk")) as real:
        if real is not None:
            yield from _mounted(site, real.place, real.read_only)


def _arguments(site: Site, command: str, folder: Path) -> list[str]:
    """A command that writes below `folder`, where a stopped and a finished run lie."""
    return {
        "train": site.training(folder / "new"),
        "resume": ["resume", str(folder / "stopped"), "--workers", "0", "--device", "cpu"],
        "merge": ["merge", str(folder / "run"), "--wise", "0:1:0.5", "--device", "cpu"],
        "export": ["export", str(folder / "run"), "--out", str(folder / "export")],
        "pack": ["pack", str(site.photos), "--out", str(folder / "packed.tar")],
    }[command]


def _filled(site: Site, folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(site.stopped, folder / "stopped")
    shutil.copytree(site.run, folder / "run")
    return folder


def _injected(site: Site, command: str, name: str, error: int) -> Verdict:
    folder = _filled(site, site.fresh("denied"))
    before, what = tree(folder), f"{command}: {name} for every write"
    end = live(_arguments(site, command, folder), wound=lambda: refuse_writing(folder, error))
    if not end.clear:
        return lost(what, end.last_words)
    left = {
        name: seal for name, seal in tree(folder).items() if not name.endswith(".tmp")
    }  # nor may it clean up
    return refused(what) if left == before else lost(what, "files have changed")


def _mounted(site: Site, place: Path, freeze: object) -> Iterator[Verdict]:
    folder = _filled(site, place / "work")
    before = tree(folder)
    assert callable(freeze)
    freeze()
    for command in site.few(2, COMMANDS):
        end = live(_arguments(site, command, folder))
        same = tree(folder) == before
        what = f"{command}: a read-only disk"
        yield refused(what) if end.clear and same else lost(what, end.last_words)
    for what, arguments in (
        (
            "export from a read-only disk",
            ["export", str(folder / "run"), "--out", str(site.fresh("exported"))],
        ),
        (
            "eval from a read-only disk",
            ["eval", str(folder / "run"), "--data", str(site.photos), "--device", "cpu"],
        ),
    ):
        end = live(arguments)
        yield (
            survived(what) if end.code == 0 or (end.clear and "eval" in what) else lost(what, end.last_words)
        )
