"""`python -m studies.faults`: run every fault scenario, print one table, and fail if an input was lost."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from studies.faults.process import preload
from studies.faults.suite import scenarios, suite
from studies.faults.table import finished, markdown, merged, page, row, show, to_json
from studies.faults.workspace import warm_up
from tracer.storage.atomic import write_text


def main() -> int:
    """Exit code: 0 if no input was lost or silently wrong, else 1; the lost ones are printed."""
    parser = argparse.ArgumentParser(prog="python -m studies.faults", description=__doc__)
    names = ", ".join(scenarios())
    parser.add_argument("scenarios", nargs="*", help=f"scenarios to run, by default all: {names}")
    parser.add_argument("--quick", action="store_true", help="a few inputs of each scenario, in seconds")
    parser.add_argument("--seed", type=int, default=0, help="seed of the inputs and of the moments of kills")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="scenarios at a time")
    parser.add_argument("--out", type=Path, help="JSON to write; scenarios that are not run keep their entry")
    parser.add_argument("--page", type=Path, help="replace the table between the markers of this page")
    parser.add_argument(
        "--go-on", action="store_true", help="leave out scenarios that --out has with this seed"
    )
    options = parser.parse_args()
    if unknown := sorted(set(options.scenarios) - set(scenarios())):
        parser.error(f"unknown scenario {unknown[0]}: choose from {names}")
    preload()
    memory = Path("/dev/shm")  # power cuts are not simulated, so waiting for a disk would gain nothing
    with tempfile.TemporaryDirectory(prefix="faults-", dir=memory if memory.is_dir() else None) as folder:
        chosen = options.scenarios or list(scenarios())
        os.environ["TRACER_CACHE"] = str(Path(folder) / "cache")  # scans of these data are of no use later
        warm_up(Path(folder) / "warm")
        if options.go_on and options.out and options.out.exists():
            done = finished(options.out.read_text(), options.seed)
            chosen = [name for name in chosen if name not in done]
        tallies, rows = [], []
        for tally in suite(
            Path(folder), chosen, options.seed, quick=options.quick, report=show, jobs=options.jobs
        ):
            tallies.append(tally)
            rows.append(row(tally, options.seed, sys.argv[1:]))
            if options.out:  # after each scenario, so that a suite that is stopped can go on
                text = options.out.read_text() if options.out.exists() else ""
                write_text(options.out, to_json(merged(text, rows)))
    if options.out:
        rows = merged(options.out.read_text() if options.out.exists() else "", rows)
    print(markdown(rows))
    if options.page:
        write_text(options.page, page(options.page.read_text(), rows))
    for tally in tallies:
        for verdict in tally.lost:
            print(f"LOST {tally.name}: {verdict.what}: {verdict.why}", file=sys.stderr)
    return int(any(tally.lost for tally in tallies))


if __name__ == "__main__":
    sys.exit(main())
