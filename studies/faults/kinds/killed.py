"""SIGKILL at random points of train, sweep, merge, export and pack."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from studies.faults.life import End, live
from studies.faults.site import Site, difference, tree
from studies.faults.verdict import Verdict, lost, survived
from studies.faults.wounds import at_call, die

DURABLE = ("fsync", "replace", "mkdir")  # the calls between which files come to be


class Work(NamedTuple):
    """A command that can be killed, what it is worth, and how to see that it is done right."""

    name: str
    kills: tuple[int, int]  # quick, all
    lives: int  # kills before it is left in peace
    prepare: Callable[[Site, str], Path]
    go: Callable[..., End]
    done: Callable[[Path], bool]
    wrong: Callable[[Site, Path], str]


def trials(site: Site) -> Iterator[Verdict]:
    """Kill each command at random until it has died often enough, then let it end and compare with peace."""
    for work in WORKS:
        wanted, seconds, died, rounds = site.some(*work.kills), _peace(site, work), 0, 0
        while died < wanted and rounds < 4 * wanted:
            rounds += 1
            place = work.prepare(site, f"killed-{work.name}")
            kills, wrong = _lives(site, work, place, seconds)
            died += len(kills)
            yield from (lost(kill, wrong) if wrong else survived(kill) for kill in kills)
            if wrong and not kills:
                yield lost(work.name, wrong)
        if died < wanted:
            yield lost(work.name, f"killed {died} times where {wanted} were wanted: too little was tried")


def _peace(site: Site, work: Work) -> float:
    """How long the command takes if nothing happens to it."""
    return work.go(site, work.prepare(site, f"killed-{work.name}")).seconds


def _lives(site: Site, work: Work, place: Path, seconds: float) -> tuple[list[str], str]:
    """The kills that hit, and what is wrong after them."""
    kills: list[str] = []
    for _ in range(work.lives):
        if work.done(place):
            break
        if site.rng.random() < 0.5:
            moment = site.rng.uniform(0, 1.1 * seconds)
            end, how = work.go(site, place, kill_after=moment), f"{work.name} after {moment:.3f} s"
        else:
            number = site.rng.randint(1, 30)
            end = work.go(site, place, wound=lambda n=number: at_call(n, die, *DURABLE))
            how = f"{work.name} at durable call {number}"
        if end.killed:
            kills.append(how)
        elif end.code:
            return kills, f"{how}: {end.last_words}"
    if not work.done(place):
        end = work.go(site, place)
        if end.code:
            return kills, end.last_words
    return kills, work.wrong(site, place)


def _in_peace(site: Site, name: str, go: Callable[[Site, Path], End]) -> Path:
    """What a command makes if nothing happens to it; made once."""
    place = site.folder / "trials" / f"peaceful-{name}"
    if not place.exists():
        end = go(site, place)
        assert end.code == 0, end.last_words
    return place


def _sweep(site: Site, place: Path, **how: object) -> End:
    worker = ["sweep", f"{site.recipe}:tiny", "--out", str(place), "--worker", "--device", "cpu"]
    return live(worker, **how)  # pyright: ignore[reportArgumentType]


def _swept(site: Site, place: Path) -> str:
    peace = _in_peace(site, "sweep", _sweep)
    wrong = [difference(run, peace / run.name) for run in sorted(place.glob("[!.]*"))]
    missing = {run.name for run in peace.glob("[!.]*")} ^ {run.name for run in place.glob("[!.]*")}
    return "; ".join([*filter(None, wrong), *(f"run {name} is missing" for name in missing)])


def _merge(site: Site, place: Path, **how: object) -> End:
    asked = ["merge", str(place), "--wise", "0:1:0.5", "--name", "mixed", "--device", "cpu"]
    return live(asked, **how)  # pyright: ignore[reportArgumentType]


def _merged(site: Site, place: Path) -> str:
    peace = _in_peace(site, "merge", lambda site, place: _merge(site, site.copy(site.run, place.name)))
    files = {
        "weights/mixed.safetensors",
        *(f"weights/{file.name}" for file in (site.run / "weights").iterdir()),
    }
    mine, theirs = tree(place), tree(peace)
    wrong = [name for name in sorted(files) if mine.get(name) != theirs[name]]
    if _story(place) != _story(peace):
        wrong.append("merges/mixed.json")
    return ", ".join(f"{name} differs" for name in wrong)


def _story(run: Path) -> dict[str, Any] | None:
    """What a merge says of itself, but for where its run lies; None if that cannot be read."""
    try:
        told = json.loads((run / "merges" / "mixed.json").read_text())
    except (OSError, ValueError):
        return None
    return {part: said for part, said in told.items() if part != "runs"}


def _export(site: Site, place: Path, **how: object) -> End:
    return live(["export", str(site.run), "--out", str(place)], **how)  # pyright: ignore[reportArgumentType]


def _exported(site: Site, place: Path) -> str:
    peace = _in_peace(site, "export", _export)
    return "" if tree(place) == tree(peace) else "the exported folders differ"


def _pack(site: Site, place: Path, **how: object) -> End:
    return live(["pack", str(site.photos), "--out", str(place)], **how)  # pyright: ignore[reportArgumentType]


def _packed(site: Site, place: Path) -> str:
    peace = _in_peace(site, "pack.tar", _pack)
    return "" if place.read_bytes() == peace.read_bytes() else "the packed files differ"


WORKS = (
    Work(
        "train",
        kills=(3, 80),
        lives=10,
        prepare=Site.fresh,
        go=lambda site, place, **how: site.trained(place, **how),
        done=lambda place: (place / "result.json").exists(),
        wrong=lambda site, place: difference(place, site.run),
    ),
    Work(
        "sweep",
        kills=(1, 40),
        lives=8,
        prepare=Site.fresh,
        go=_sweep,
        done=lambda place: len(list(place.glob("*/result.json"))) == 2,
        wrong=_swept,
    ),
    Work(
        "merge",
        kills=(1, 30),
        lives=6,
        prepare=lambda site, name: site.copy(site.run, name),
        go=_merge,
        done=lambda place: (place / "merges" / "mixed.json").exists(),
        wrong=_merged,
    ),
    Work(
        "export",
        kills=(1, 25),
        lives=6,
        prepare=Site.fresh,
        go=_export,
        done=lambda place: place.exists(),
        wrong=_exported,
    ),
    Work(
        "pack",
        kills=(1, 25),
        lives=6,
        prepare=lambda site, name: site.fresh(f"{name}.tar"),
        go=_pack,
        done=lambda place: place.exists(),
        wrong=_packed,
    ),
)
