"""`python -m faults`: try every kind of fault, print one table, and fail if anything was lost."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from studies.faults.life import prepare
from studies.faults.suite import kinds, suite
from studies.faults.table import markdown, merged, page, row, show, written
from tracer.storage.atomic import write_text


def main() -> int:
    """0: nothing lost, nothing silently wrong; 1: something was, and is named."""
    parser = argparse.ArgumentParser(prog="python -m faults", description=__doc__)
    parser.add_argument("kinds", nargs="*", help=f"kinds to try, by default all: {', '.join(kinds())}")
    parser.add_argument("--quick", action="store_true", help="a few inputs of each kind, in seconds")
    parser.add_argument("--seed", type=int, default=0, help="decides moments, places and values")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="kinds at a time")
    parser.add_argument("--out", type=Path, help="JSON to write; kinds that are not tried keep what it says")
    parser.add_argument("--page", type=Path, help="put the table between the marks of this page")
    asked = parser.parse_args()
    if strange := sorted(set(asked.kinds) - set(kinds())):
        parser.error(f"unknown kind {strange[0]}: choose from {', '.join(kinds())}")
    prepare()
    memory = Path("/dev/shm")  # no power is cut here, so nothing is gained by waiting for a disk
    with tempfile.TemporaryDirectory(prefix="faults-", dir=memory if memory.is_dir() else None) as folder:
        names = asked.kinds or list(kinds())
        tallies = suite(Path(folder), names, asked.seed, quick=asked.quick, tell=show, jobs=asked.jobs)
    rows = [row(tally, asked.seed, sys.argv[1:]) for tally in tallies]
    print(markdown(rows))
    if asked.out:
        rows = merged(asked.out.read_text() if asked.out.exists() else "", rows)
        write_text(asked.out, written(rows))
    if asked.page:
        write_text(asked.page, page(asked.page.read_text(), rows))
    for tally in tallies:
        for verdict in tally.lost:
            print(f"LOST {tally.name}: {verdict.what}: {verdict.why}", file=sys.stderr)
    return int(any(tally.lost for tally in tallies))


if __name__ == "__main__":
    sys.exit(main())
