"""Two processes on one run directory, and locks of the dead."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

from studies.faults.life import Life, live
from studies.faults.site import STEPS, Site, difference, tree
from studies.faults.verdict import Verdict, lost, refused, survived
from studies.faults.wounds import behind_rename


def trials(site: Site) -> Iterator[Verdict]:
    """The second one is refused while the first one lives, and goes on once it is dead."""
    for _ in range(site.some(1, 8)):
        yield from _second(site)
    for content in (b"", b"99999999", b"\0\xff" * 100):
        run = site.copy(site.stopped, "stale")
        (run / ".lock").write_bytes(content)
        what, end = f"the lock of a dead process, {len(content)} bytes", site.trained(run)
        wrong = end.last_words if end.code else difference(run, site.run)
        yield lost(what, wrong) if wrong else survived(what)
    for _ in range(site.some(1, 6)):
        yield _race(site)


def _second(site: Site) -> Iterator[Verdict]:
    """The first one is stopped in the middle of its work, which no lock with a time would survive."""
    run, step = site.fresh("shared"), site.rng.randrange(2, STEPS, 2)
    first = Life(
        site.training(run),
        wound=lambda: behind_rename(f"step-{step:09d}", lambda: os.kill(os.getpid(), signal.SIGSTOP)),
    )
    if not first.stands_still():
        yield lost(f"a run to stop at step {step}", "it did not come that far")
        return
    before = tree(run)
    for arguments in (["resume", str(run), "--workers", "0", "--device", "cpu"], site.training(run)):
        end, what = live(arguments), f"{arguments[0]} beside a run at step {step}"
        same = tree(run) == before
        yield refused(what) if end.clear and same else lost(what, end.last_words if same else "files changed")
    first.kill()
    first.end()
    end, what = site.trained(run), f"going on behind a dead process at step {step}"
    wrong = end.last_words if end.code else difference(run, site.run)
    yield lost(what, wrong) if wrong else survived(what)


def _race(site: Site) -> Verdict:
    """Both start at the same moment: one trains, the other is refused."""
    run, what = site.fresh("race"), "two that start at once"
    lives = [Life(site.training(run)) for _ in range(2)]
    ends = [each.end() for each in lives]
    done = [end for end in ends if end.code == 0]
    if len(done) != 1 or not all(end.clear for end in ends if end.code):
        return lost(what, " / ".join(end.last_words for end in ends))
    wrong = difference(run, site.run)
    return lost(what, wrong) if wrong else survived(what)
