"""Disk full: at the n-th fsync, rename or new folder, beyond a size of file, and for real on a small disk."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from pathlib import Path

from studies.faults.life import End, live
from studies.faults.mount import disk
from studies.faults.site import Site, difference, digest, tree
from studies.faults.verdict import Verdict, lost, survived
from studies.faults.wounds import BROKEN, FULL, at_call, refuse

LARGE = 1 << 16  # kilobytes, enough for everything


def trials(site: Site) -> Iterator[Verdict]:
    """The command fails clearly; once there is room it goes on, to the same bits."""
    for _ in range(site.some(2, 24)):
        call, number = site.rng.choice(("fsync", "replace", "mkdir")), site.rng.randint(1, 25)
        error = site.rng.choice((FULL, FULL, BROKEN))
        what = f"train: error {error} from {call} number {number} on"
        yield _train(site, what, lambda c=call, n=number, e=error: at_call(n, refuse(e), c))
    for _ in range(site.some(1, 8)):
        size = round(1024 * 2 ** site.rng.uniform(-1, 10))
        yield _train(site, f"train: no file above {size} bytes", lambda s=size: _limit(s))
    for _ in range(site.some(1, 16)):
        yield from _small_disk(site, round(2 ** site.rng.uniform(3, 13)))
    for _ in range(site.some(1, 10)):
        yield from _other_commands(site)


def _limit(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def _train(site: Site, what: str, wound: Callable[[], object]) -> Verdict:
    place = site.fresh("full")
    first = site.trained(place, wound=wound)
    return _judged(site, what, place, first, lambda: site.trained(place))


def _judged(site: Site, what: str, place: Path, first: End, again: Callable[[], End]) -> Verdict:
    if first.code and not first.clear:
        return lost(what, first.last_words)
    second = again() if first.code else first
    if second.code:
        return lost(what, f"with room again: {second.last_words}")
    wrong = difference(place, site.run)
    return lost(what, wrong) if wrong else survived(what)


def _small_disk(site: Site, kilobytes: int) -> Iterator[Verdict]:
    with disk(site.fresh("disk"), kilobytes) as small:
        if small is None:
            return
        place = small.place / "run"
        first = site.trained(place)
        small.resize(LARGE)
        what = f"train: a disk of {kilobytes} KiB"
        yield _judged(site, what, place, first, lambda: site.trained(place))


def _other_commands(site: Site) -> Iterator[Verdict]:
    kilobytes = round(2 ** site.rng.uniform(2, 8))
    with disk(site.fresh("disk"), kilobytes) as small:
        if small is None:
            return
        export, pack = small.place / "export", small.place / "packed.tar"
        for out, arguments in (
            (export, ["export", str(site.run), "--out", str(export)]),
            (pack, ["pack", str(site.photos), "--lossless", "--out", str(pack)]),
        ):
            what = f"{arguments[0]}: a disk of {kilobytes} KiB"
            first = live(arguments)
            if first.code and (not first.clear or out.exists()):
                yield lost(what, f"{first.last_words}, left: {out.exists()}")
                continue
            small.resize(LARGE)
            second = live(arguments) if first.code else first
            peace = site.fresh(f"peace{out.suffix}")
            live([*arguments[:-1], str(peace)])
            same = digest(out) == digest(peace) if out.is_file() else tree(out) == tree(peace)
            small.resize(kilobytes)
            yield survived(what) if not second.code and same else lost(what, second.last_words)
