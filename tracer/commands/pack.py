"""Resize a data set once, so that training reads small images: `tracer pack DATA --out FILE.tar`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from tracer.console import console
from tracer.data.pack import pack
from tracer.data.scan import scan
from tracer.data.sources import load


def main(arguments: list[str]) -> int:
    def write(
        data: Annotated[str, tyro.conf.Positional],
        out: Path,
        side: int = 256,
        lossless: bool = False,
        split: str | None = None,
        image_column: str | None = None,
        caption_column: str | None = None,
        label_column: str | None = None,
        classes: str | None = None,
    ) -> int:
        """Write one tar file of resized images with their labels and captions; train on it with --data FILE.tar.

        Args:
            data: a folder of images, a table, shards, or an embedded name.
            out: the tar file to write.
            side: pixels of the shorter side; a model of 224 with random crops wants 256.
            lossless: PNG instead of JPEG of quality 95: larger, and the same pixels.
            split: train, val or test, where the data have several.
            image_column: column that holds the image's path.
            caption_column: column that holds the caption.
            label_column: column that holds the class.
            classes: file with the class names.
        """
        columns = {"image": image_column, "caption": caption_column, "label": label_column}
        examples = scan(load(data, split=split, classes=classes, **columns))
        written = 0
        for written in pack(examples, out, side=side, lossless=lossless):  # noqa: B007
            pass
        size = out.stat().st_size / 2**20
        console.print(
            f"{written} images in {out}, {size:.1f} MiB. Next: tracer train --data {out}", highlight=False
        )
        return 0

    return tyro.cli(write, args=arguments, prog="tracer pack", config=(tyro.conf.FlagCreatePairsOff,))
