"""Resize data once, to train faster: `tracer pack DATA --out X.tar`."""

from __future__ import annotations

from pathlib import Path

from tracer.api.terminal import counting, say
from tracer.cli.flags import command
from tracer.core.command_line import command_line
from tracer.data.pack import check_place, pack
from tracer.data.scan import scan
from tracer.data.sources import Reading, load


@command("tracer pack")
def main(
    data: str,
    /,
    out: Path,
    side: int = 256,
    lossless: bool = False,
    split: str | None = None,
    *,
    reading: Reading,
    strict: bool = False,
) -> int:
    """Write one tar file of resized images with their labels and captions; train on it with --data FILE.tar.

    Args:
        data: a folder of images, a table, shards, or the name of a built-in set.
        out: the tar file to write.
        side: pixels of the shorter side; for a model of 224 pixels with random crops use 256.
        lossless: PNG instead of JPEG of quality 95: larger files, identical pixels.
        split: train, val or test, if the data have several.
        strict: stop if any image is unreadable, instead of skipping up to 1 %.
    """
    check_place(out, side)
    with counting("reading the images") as count:
        examples = scan(load(data, split=split, **reading.keywords), strict, count)
    with counting("packing") as count:
        pack(examples, out, side=side, lossless=lossless, progress=count)
    size = out.stat().st_size / 2**20
    others = ", ".join(each for each in examples.splits if each != examples.split)
    of = f" of the split {examples.split}" if examples.split else ""
    say(f"{len(examples)} images{of} in {out}, {size:.1f} MiB. Next: {command_line('train', '--data', out)}")
    if others:
        say(f"Not packed: {others}. Pack each with --split, and give val to training with --held-out.")
    return 0
