"""Look at data before using it: `tracer check DATA`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from tracer.cli.console import console, counting
from tracer.core.errors import UserError
from tracer.data.check import describe
from tracer.data.options import unseen
from tracer.data.reading import AS_FOUND, Reading
from tracer.data.scan import scan
from tracer.data.sources import load
from tracer.data.split import hold_out
from tracer.evaluation.suites import COMPLETE, EMBEDDED, SUITES, told_places
from tracer.evaluation.suites import check as check_imagenet


def main(arguments: list[str]) -> int:
    def check(
        data: Annotated[str, tyro.conf.Positional],
        reading: Reading = AS_FOUND,
        strict: bool = False,
        root: Path | None = None,
        at: tuple[str, ...] = (),
    ) -> int:
        """Say what is in a data set, what is wrong with it, and the command that trains on it.

        Args:
            data: a folder of images, a table, shards, or an embedded name.
            strict: refuse the data if any image is unreadable.
            root: where DATA is a suite, such as imagenet: the folder that holds its data sets. Says what is there, what
                is missing and where to get it, and ends with code 1 if anything is missing.
            at: sets of imagenet that lie elsewhere, each NAME=PLACE.
        """
        if data in SUITES and not Path(data).exists():
            return _suite(data, root, at)
        if root is not None or at:
            raise UserError(f"--root and --at are for suites ({', '.join(SUITES)}), and {data} is none")
        with counting("looking at the images") as count:
            found = scan(load(data, **reading.keywords), strict, count)
            aside = unseen(found.splits)
            if aside is None:
                train, held_out = hold_out(found)
            else:  # the data bring their own
                train, held_out = found, scan(load(data, split=aside, **reading.keywords), strict, count)
        for line in describe(train, held_out, flags={"data": data, **reading.flags}).lines():
            console.print(line, highlight=False, markup=False)
        return 0

    flat = (tyro.conf.OmitArgPrefixes, tyro.conf.FlagCreatePairsOff)
    return tyro.cli(check, args=arguments, prog="tracer check", config=flat)


def _suite(name: str, root: Path | None, at: tuple[str, ...]) -> int:
    """What is there of a suite."""
    if name not in EMBEDDED and root is None and not at:
        raise UserError(f"{name} is a suite: give --root, the folder that holds its data sets")
    if name == "imagenet":
        lines = check_imagenet(root, told_places(at))
    else:
        opening = (SUITES[name]() if name in EMBEDDED else SUITES[name](root)).open()
        lines = [f"{COMPLETE} {each.shift.name}: {len(each.examples)} images" for each in opening.shifts]
    for line in lines:
        console.print(line, highlight=False, markup=False)
    return 0 if all(line.startswith(COMPLETE) for line in lines) else 1
