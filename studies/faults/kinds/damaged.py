"""Truncated, bit-flipped and lost files of checkpoints and runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from studies.faults.life import live
from studies.faults.site import STEPS, Site, difference, tree
from studies.faults.verdict import Verdict, lost, refused, survived
from tracer.core.errors import UserError
from tracer.runs.run import Run

NEWEST = f"resume/step-{STEPS - 2:09d}"


def trials(site: Site) -> Iterator[Verdict]:
    """A damaged checkpoint is named and the one before it used; with all damaged the run is refused."""
    for file in sorted((site.stopped / NEWEST).iterdir()):
        for harm in site.few(1, [*HARMS, *["a flipped bit"] * 4]):
            yield _newest(site, f"{NEWEST}/{file.name}", harm)
    for _ in range(site.some(1, 8)):
        yield _all(site)
    for name in ("result", "student", "teacher"):
        for harm in site.few(1, [*HARMS, *["a flipped bit"] * 4]):
            yield _weights(site, name, harm)
    for harm in site.few(2, [*HARMS, *["a flipped bit"] * 20]):
        yield _description(site, harm)
    for harm in site.few(1, [*HARMS, *["a flipped bit"] * 20]):
        yield _result(site, harm)


def flipped(content: bytes, rng: Random) -> bytes:
    """One bit, anywhere."""
    changed = bytearray(content)
    changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _zeros(content: bytes, rng: Random) -> bytes:
    start = rng.randrange(len(content))
    return content[:start] + bytes(min(512, len(content) - start)) + content[start + 512 :]


HARMS: dict[str, Callable[[bytes, Random], bytes | None]] = {
    "a flipped bit": flipped,
    "a cut": lambda content, rng: content[: rng.randrange(len(content))],
    "nothing left": lambda content, rng: b"",
    "a block of zeros": _zeros,
    "something behind it": lambda content, rng: content + rng.randbytes(rng.randint(1, 99)),
    "other bytes": lambda content, rng: rng.randbytes(len(content)),
    "lost": lambda content, rng: None,
}


def _harm(file: Path, harm: str, rng: Random) -> bool:
    """Whether the harm changed anything."""
    before = file.read_bytes()
    after = HARMS[harm](before, rng)
    file.unlink() if after is None else file.write_bytes(after)
    return after != before


def _newest(site: Site, name: str, harm: str) -> Verdict:
    run, what = site.copy(site.stopped, "damaged"), f"{name}: {harm}"
    harmed = _harm(run / name, harm, site.rng)
    end = site.trained(run)
    if end.code:
        return lost(what, end.last_words)
    if harmed and "is damaged" not in end.said:
        return lost(what, "nobody was told")
    wrong = difference(run, site.run)
    return lost(what, wrong) if wrong else survived(what)


def _all(site: Site) -> Verdict:
    run = site.copy(site.stopped, "damaged")
    for place in (run / "resume").glob("step-*"):
        file = site.rng.choice(sorted(place.iterdir()))
        while not _harm(file, "a flipped bit", site.rng):
            pass
    before, end = tree(run / "resume"), site.trained(run)
    clear = end.clear and "no usable checkpoint" in end.said and tree(run / "resume") == before
    return refused("every checkpoint") if clear else lost("every checkpoint", end.last_words)


def _weights(site: Site, name: str, harm: str) -> Verdict:
    """Weights of a finished run, behind which there is nothing to fall back on."""
    run, what = site.copy(site.run, "damaged"), f"weights/{name}.safetensors: {harm}"
    harmed = _harm(run / "weights" / f"{name}.safetensors", harm, site.rng)
    out = site.fresh("exported")
    end = live(["export", str(run), "--weights", name, "--out", str(out)])
    if not harmed:
        return survived(what)
    return refused(what) if end.clear and not out.exists() else lost(what, end.last_words)


def _description(site: Site, harm: str) -> Verdict:
    run, what = site.copy(site.stopped, "damaged"), f"experiment.json: {harm}"
    harmed = _harm(run / "experiment.json", harm, site.rng)
    resuming = ["resume", str(run), "--save-every", "2", "--workers", "0", "--device", "cpu"]
    end = live(resuming)
    if end.clear:
        return refused(what)
    wrong = end.last_words if end.code else difference(run, site.run)
    if not wrong and harmed:  # taken as it is: then all that it says must be what was written
        mine, theirs = (Run.open(each).description for each in (run, site.stopped))
        wrong = ", ".join(name for name in theirs if mine.get(name) != theirs[name])
    return lost(what, wrong) if wrong else survived(what)


def _result(site: Site, harm: str) -> Verdict:
    """What came out of a finished run is told as it was written, or not at all."""
    run, what = site.copy(site.run, "damaged"), f"result.json: {harm}"
    _harm(run / "result.json", harm, site.rng)
    if not Run.open(run).finished:
        return survived(what)  # lost, and seen to be
    try:
        found = Run.open(run).result
    except UserError:
        return refused(what)
    told = {name: found.get(name) for name in Run.open(site.run).result}
    return survived(what) if told == Run.open(site.run).result else lost(what, "nobody was told")
