"""`python -m studies.choices`: finetune and merge on small samples of real data, and count what intervals hold."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path

from studies.choices.statistics import tables
from studies.choices.study import Outcome, Scale, study, to_json
from tracer.core.errors import UserError
from tracer.models.open_clip_compat import open_clip
from tracer.storage.atomic import write_json
from tracer.storage.cache import cache_folder
from tracer.storage.provenance import origin

SEEDS = 20
NAMES = 20


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m studies.choices", description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="seeds of each data set and size")
    parser.add_argument("--first-seed", type=int, default=0, help="the first of them")
    parser.add_argument("--cache", type=Path, default=cache_folder() / "choices", help="folder of the data")
    parser.add_argument("--runs", type=Path, default=Path("runs/choices"), help="folder of the runs")
    parser.add_argument("--out", type=Path, help="JSON of results; runs in it are not run again")
    parser.add_argument("--show", type=Path, nargs="+", help="run nothing: print the tables of these results")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    # The agreement over ImageNet's names is printed and not judged here: few names make 180 runs quicker.
    open_clip.IMAGENET_CLASSNAMES = open_clip.IMAGENET_CLASSNAMES[:NAMES]
    try:
        if options.show:
            outcomes = [each for file in options.show for each in read(file)]
        else:
            seeds = range(options.first_seed, options.first_seed + options.seeds)
            outcomes = read(options.out) if options.out and options.out.exists() else []
            done = {(each.data, each.images, each.seed) for each in outcomes}
            for outcome in study(options.cache, options.runs, seeds, done):
                outcomes.append(outcome)
                line = f"{outcome.data} {outcome.images} seed {outcome.seed}: α = {outcome.alpha:g}"
                print(line, file=sys.stderr, flush=True)
                _write(options.out, outcomes)
    except UserError as error:
        parser.exit(2, f"error: {error}\n")
    _write(options.out, outcomes)
    print(tables(outcomes))
    return 0


def _write(file: Path | None, outcomes: list[Outcome]) -> None:
    """Write what has been measured so far."""
    if file is not None:
        command = " ".join(["python -m studies.choices", *sys.argv[1:]])
        write_json(file, {**origin(command), "scale": vars(Scale()), "outcomes": to_json(outcomes)})


def read(file: Path) -> list[Outcome]:
    """The outcomes in a file of results."""
    return [Outcome.from_json(each) for each in json.loads(file.read_text())["outcomes"]]


if __name__ == "__main__":
    sys.exit(main())
