"""Check a data set before training on it: `tracer check DATA`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from tracer.core.errors import UserError
from tracer.data.check import describe
from tracer.data.options import held_out_split
from tracer.data.reading import AS_FOUND, Reading
from tracer.data.scan import scan
from tracer.data.sources import load
from tracer.data.split import hold_out
from tracer.evaluation.suites import COMPLETE, EMBEDDED, SUITES, parse_locations
from tracer.evaluation.suites import check as check_imagenet
from tracer.terminal import console, counting


def main(arguments: list[str]) -> int:
    def check(
        data: Annotated[str, tyro.conf.Positional],
        reading: Reading = AS_FOUND,
        strict: bool = False,
        root: Path | None = None,
        at: tuple[str, ...] = (),
    ) -> int:
        """Print a summary of a data set, its problems, and the command that trains on it.

        Args:
            data: a folder of images, a table, shards, or the name of a built-in set.
            strict: stop if any image is unreadable.
            root: if DATA is a suite such as imagenet: the folder of its data sets. Lists which are complete, which are
                missing and where to get them; the exit code is 1 if any is missing.
            at: sets of imagenet in other places, each NAME=PLACE.
        """
        if data in SUITES and not Path(data).exists():
            return _suite(data, root, at)
        if root is not None or at:
            raise UserError(f"--root and --at are for suites ({', '.join(SUITES)}), and {data} is not one")
        with counting("reading the images") as count:
            examples = scan(load(data, **reading.keywords), strict, count)
            split = held_out_split(examples.splits)
            if split is None:
                train, held_out = hold_out(examples)
            else:
                train, held_out = examples, scan(load(data, split=split, **reading.keywords), strict, count)
        for line in describe(train, held_out, flags={"data": data, **reading.flags}).lines():
            console.print(line, highlight=False, markup=False)
        return 0

    flat = (tyro.conf.OmitArgPrefixes, tyro.conf.FlagCreatePairsOff)
    return tyro.cli(check, args=arguments, prog="tracer check", config=flat)


def _suite(name: str, root: Path | None, at: tuple[str, ...]) -> int:
    """Print which data sets of a suite are complete."""
    if name not in EMBEDDED and root is None and not at:
        raise UserError(f"{name} is a suite: give --root, the folder of its data sets")
    if name == "imagenet":
        lines = check_imagenet(root, parse_locations(at))
    else:
        opening = (SUITES[name]() if name in EMBEDDED else SUITES[name](root)).open()
        lines = [f"{COMPLETE} {each.shift.name}: {len(each.examples)} images" for each in opening.shifts]
    for line in lines:
        console.print(line, highlight=False, markup=False)
    return 0 if all(line.startswith(COMPLETE) for line in lines) else 1
