"""Tables: a million rows, odd encodings, zero bytes, ragged rows, and other defects of exports."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from studies.faults.scenarios.damaged import flipped
from studies.faults.verdict import Verdict, lost, refused, survived
from studies.faults.workspace import Workspace
from tracer.core.errors import UserError
from tracer.data.examples import Examples
from tracer.data.scan import validate
from tracer.data.sources import load

ROWS = [("a.png", "ein Käfer, grün"), ("b.png", 'ein "Ding"'), ("c.png", "東京 🗼")]
PLAIN = [("a.png", "one"), ("b.png", "two"), ("c.png", "three")]
WESTERN = [("a.png", "Käfer"), ("b.png", "façade"), ("c.png", "niño")]


def trials(workspace: Workspace) -> Iterator[Verdict]:
    """Every row is read as it was written, or the error message names the file."""
    folder = workspace.new_path("tables")
    folder.mkdir()
    for name in "abc":
        Image.new("RGB", (8, 8)).save(folder / f"{name}.png")
    for what, content, rows in _readable():
        yield _same(folder / "t.csv", what, content, rows)
    for what, content in _unreadable().items():
        yield _refused(folder / "t.csv", what, content)
    yield _many(folder / "many.csv", workspace.count(20_000, 1_000_000))
    yield from _other_formats(workspace, folder)
    whole = csv(ROWS).encode()
    for number in range(workspace.count(30, 1500)):
        content = flipped(whole, workspace.rng)[
            : workspace.rng.choice((len(whole), workspace.rng.randrange(1, len(whole))))
        ]
        yield _read_or_refused(folder / "t.csv", f"a table with damage {number}", content)


def csv(rows: Sequence[tuple[str, str]], mark: str = ",", end: str = "\n") -> str:
    """A table as a spreadsheet writes it."""
    quoted = [(image, '"' + text.replace('"', '""') + '"') for image, text in rows]
    return end.join([f"image{mark}caption", *(mark.join(row) for row in quoted), ""])


def _readable() -> Iterator[tuple[str, bytes, list[tuple[str, str]]]]:
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        yield encoding, csv(ROWS).encode(encoding), ROWS
    yield "UTF-16 of the other end", b"\xfe\xff" + csv(ROWS).encode("utf-16-be"), ROWS
    yield "Windows' Western encoding", csv(WESTERN).encode("cp1252"), WESTERN
    for name, end in (("Windows' line ends", "\r\n"), ("an old Mac's line ends", "\r")):
        yield name, csv(ROWS, end=end).encode(), ROWS
    for name, mark in (("semicolons", ";"), ("tabs", "\t"), ("bars", "|")):
        yield name, csv(ROWS, mark).encode(), ROWS
    yield "blank lines", csv(PLAIN, end="\n\n\n").encode(), PLAIN
    yield "no line end at the end", csv(PLAIN).rstrip().encode(), PLAIN
    long = [("a.png", "x" * 100_000), *PLAIN[1:]]
    yield "a caption of 100 000 letters", csv(long).encode(), long
    lines = [("a.png", "one\ntwo\r\nthree"), *PLAIN[1:]]
    yield "line ends inside quotes", csv(lines).encode(), lines


def _unreadable() -> dict[str, bytes]:
    return {
        "a zero byte": csv(PLAIN).replace("one", "o\0e").encode(),
        "a zero byte in a path": csv(PLAIN).replace("a.png", "a\0.png").encode(),
        "UTF-16 without its mark": csv(PLAIN).encode("utf-16-le"),
        "half of UTF-16": csv(ROWS).encode("utf-16")[:-1],
        "a row too short": b"image,caption\na.png,one\nb.png\n",
        "a row too long": b"image,caption\na.png,one\nb.png,two,three\n",
        "quotes that never end": b'image,caption\na.png,"one\nb.png,two\n',
        "a column twice": b"image,image,caption\na.png,b.png,c\n",
        "no columns that mean anything": b"x,y\na.png,one\n",
        "nothing": b"",
        "a header alone": b"image,caption\n",
        "a caption of ten million letters": csv([("a.png", "x" * 10_000_000)]).encode(),
        "a program": b"\x7fELF" + bytes(range(256)) * 9,
        "images that are not there": b"image,caption\nz.png,one\n",
    }


def _rows(examples: Examples) -> list[tuple[str, str]]:
    return [
        (image, text) for image, texts in zip(examples.ids, examples.captions, strict=True) for text in texts
    ]


def _same(path: Path, what: str, content: bytes, rows: list[tuple[str, str]]) -> Verdict:
    path.write_bytes(content)
    try:
        read = _rows(load(path))
    except UserError as error:
        return lost(what, f"refused: {error}"[:300])
    return survived(what) if read == rows else lost(what, f"read as {read!r:.200}")


def _refused(path: Path, what: str, content: bytes) -> Verdict:
    path.write_bytes(content)
    try:
        examples = load(path)
    except UserError as error:
        return refused(what) if path.name in str(error) else lost(what, f"the message names no file: {error}")
    return lost(what, f"read as {_rows(examples)!r:.200}")


def _read_or_refused(path: Path, what: str, content: bytes) -> Verdict:
    """Damage inside a caption cannot be detected; any other damage is refused or leaves usable data."""
    path.write_bytes(content)
    try:
        examples = load(path)
        validate(examples)  # as every command does first
    except UserError:
        return refused(what)
    except Exception as error:  # noqa: BLE001  (any other exception counts as a lost input)
        return lost(what, f"{type(error).__name__}: {error}")
    usable = len(examples) > 0 and examples.captioned | examples.labelled
    return survived(what) if usable else lost(what, "read as nothing")


def _many(path: Path, rows: int) -> Verdict:
    """Each image is named many times, with another caption each time."""
    with path.open("w") as file:
        file.write("image,caption\n")
        file.writelines(f"{'abc'[i % 3]}.png,caption number {i}\n" for i in range(rows))
    counts = [len(texts) for texts in load(path).captions]
    right = counts == [len(range(i, rows, 3)) for i in range(3)]
    return survived(f"{rows} rows") if right else lost(f"{rows} rows", f"captions: {counts}")


def _other_formats(workspace: Workspace, folder: Path) -> Iterator[Verdict]:
    records = [{"image": image, "caption": text} for image, text in ROWS]
    lines, parquet = folder / "t.jsonl", folder / "t.parquet"
    yield _same(lines, "JSON lines", "\n".join(map(json.dumps, records)).encode(), ROWS)
    deep = b"[" * 100_000 + b"]" * 100_000
    for what, content in {
        "JSON of 100 000 brackets": deep,
        "JSON with NaN for a path": b'{"image": NaN, "caption": "x"}',
        "JSON cut off": b'{"image": "a.png", "cap',
        "JSON of half a character": b'{"image": "\\ud800.png", "caption": "x"}',
        "a number of a million digits": b'{"image": ' + b"9" * 1_000_000 + b', "caption": "x"}',
    }.items():
        yield _refused(lines, what, content)
    pq.write_table(pa.Table.from_pylist(records), parquet)
    whole = parquet.read_bytes()
    yield _same(parquet, "Parquet", whole, ROWS)
    damages: list[Callable[[], bytes]] = [
        lambda: whole[: workspace.rng.randrange(len(whole))],
        lambda: flipped(whole, workspace.rng),
    ]
    for number in range(workspace.count(6, 200)):
        yield _read_or_refused(parquet, f"Parquet with damage {number}", damages[number % 2]())
