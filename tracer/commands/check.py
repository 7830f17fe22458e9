"""Look at data before using it: `tracer check DATA`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from tracer.console import console, counting
from tracer.data.check import describe
from tracer.data.options import unseen
from tracer.data.reading import AS_FOUND, Reading
from tracer.data.scan import scan
from tracer.data.sources import load
from tracer.data.split import hold_out
from tracer.suites import check as check_imagenet


def main(arguments: list[str]) -> int:
    def check(
        data: Annotated[str, tyro.conf.Positional],
        reading: Reading = AS_FOUND,
        strict: bool = False,
        root: Path | None = None,
    ) -> int:
        """Say what is in a data set, what is wrong with it, and the command that trains on it.

        Args:
            data: a folder of images, a table, shards, or an embedded name.
            strict: refuse the data if any image is unreadable.
            root: with DATA imagenet, the folder of ImageNet and its shifts: says what is there and what is missing.
        """
        if data == "imagenet" and root is not None:
            for line in check_imagenet(root):
                console.print(line, highlight=False, markup=False)
            return 0
        with counting("looking at the images") as count:
            found = scan(load(data, **reading.options), strict, count)
            aside = unseen(found.splits)
            if aside is None:
                train, held_out = hold_out(found)
            else:  # the data bring their own
                train, held_out = found, scan(load(data, split=aside, **reading.options), strict, count)
        for line in describe(train, held_out, flags={"data": data, **reading.flags}).lines():
            console.print(line, highlight=False, markup=False)
        return 0

    flat = (tyro.conf.OmitArgPrefixes, tyro.conf.FlagCreatePairsOff)
    return tyro.cli(check, args=arguments, prog="tracer check", config=flat)
