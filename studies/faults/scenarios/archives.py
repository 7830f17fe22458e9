"""Archives and tables that unpack to far more than they hold: zip, gzip, Parquet, PNG, deep JSON, wide tables."""

from __future__ import annotations

import gzip
import io
import json
import resource
import struct
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from studies.faults.verdict import Verdict, judged
from studies.faults.workspace import Workspace
from tracer.data.scan import scan
from tracer.data.sources import load
from tracer.models.registry import locate

SECONDS, BYTES = 30.0, 1 << 30  # of CPU time and memory that making and refusing one input may take


def trials(workspace: Workspace) -> Iterator[Verdict]:
    """Each is refused, in seconds, without unpacking it."""
    folder = workspace.new_path("archives")
    folder.mkdir()
    for number in range(workspace.count(8, 160)):
        name = list(BOMBS)[number % len(BOMBS)]
        yield judged(f"{name} {number}", partial(_contained, BOMBS[name], folder, workspace.rng))


def _contained(bomb: Callable[[Path, Random], None], folder: Path, rng: Random) -> None:
    before, started = _memory(), time.process_time()
    try:
        bomb(folder, rng)
        raise AssertionError("accepted")
    finally:
        assert time.process_time() - started < SECONDS, "it took too long"
        assert _memory() - before < BYTES, "it took too much memory"


def _memory() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _npz(folder: Path, rng: Random) -> None:
    """An array of zeros, compressed a thousandfold, whose size stands in the archive."""
    header = io.BytesIO()
    count = rng.randint(1 << 12, 1 << 14)
    np.lib.format.write_array_header_1_0(
        header, {"descr": "|u1", "fortran_order": False, "shape": (count, 256, 256, 3)}
    )
    path = folder / "t.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("labels.npy", b"x")
        with archive.open("images.npy", "w", force_zip64=True) as file:
            file.write(header.getvalue())
            for _ in range(24):
                file.write(bytes(1 << 24))
    load(path)


def _parquet(folder: Path, rng: Random) -> None:
    """Millions of rows with one value take almost no room."""
    rows = rng.randint(2_000_000, 4_000_000)
    same = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int8)), pa.array(["a.png"]))
    pq.write_table(pa.table({"image": same, "label": same}), folder / "t.parquet")
    load(folder / "t.parquet")


def _png(folder: Path, rng: Random) -> None:
    """A picture of 40 000 × 40 000 pixels in a few bytes."""
    side = rng.randint(30_000, 60_000)

    def chunk(kind: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        )

    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    data = zlib.compress(bytes(1 << 16))
    tree = folder / "tree"
    for label in ("a", "b"):
        (tree / label).mkdir(parents=True, exist_ok=True)
        content = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")
        (tree / label / "1.png").write_bytes(content)
    scan(load(tree))


def _idx(folder: Path, rng: Random) -> None:
    place = folder / "idx"
    place.mkdir(exist_ok=True)
    for name in ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"):
        with gzip.open(place / f"{name}.gz", "wb", compresslevel=1) as file:
            file.write(struct.pack(">IIII", 0x803, rng.randint(1, 9), 28, 28) + bytes(1 << 26))
    load(place)


def _deep(folder: Path, rng: Random) -> None:
    text = "[" * rng.randint(20_000, 200_000)
    name = rng.choice(("t.json", "t.jsonl"))
    (folder / name).write_text(text)
    load(folder / name)


def _deep_config(folder: Path, rng: Random) -> None:
    (folder / "deep.json").write_text('{"embed_dim":' + "[" * rng.randint(20_000, 200_000))
    locate(str(folder / "deep.json"))


def _wide(folder: Path, rng: Random) -> None:
    names = ",".join(f"c{i}" for i in range(rng.randint(20_000, 200_000)))
    (folder / "t.csv").write_text(f"{names}\n{names}\n")
    load(folder / "t.csv")


def _large_config(folder: Path, rng: Random) -> None:
    """A model of millions of layers, which would be built one by one."""
    part = {"layers": rng.randint(10_000, 5_000_000), "width": 64}
    config = {"embed_dim": 8, "vision_cfg": part, "text_cfg": part}
    (folder / "large.json").write_text(json.dumps(config))
    locate(str(folder / "large.json"))


BOMBS = {
    "a NumPy archive": _npz,
    "Parquet": _parquet,
    "PNG": _png,
    "gzip": _idx,
    "deep JSON": _deep,
    "a deep config": _deep_config,
    "a wide table": _wide,
    "a large config": _large_config,
}
