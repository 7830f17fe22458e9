"""Splits: blank cells, odd names and spellings in CSV, JSON lines, Parquet, NumPy archives, shards and folders."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from studies.faults.verdict import Verdict, judged
from studies.faults.workspace import Workspace
from tracer.data.examples import Examples
from tracer.data.options import SYNONYMS
from tracer.data.sources import load

Rows = list[tuple[str, str, str | None]]  # id, label, and the cell of the column split

USUAL = ("train", "val", "test")
ODD = (
    "",
    " ",
    None,
    "nan",
    "Train",
    "TEST ",
    " val",
    "validation",
    "testing",
    "dev",
    "test set",
    "train_1",
    "x",
    "0",
)
COUNT = 6


def trials(workspace: Workspace) -> Iterator[Verdict]:
    """No row is in two splits, none is dropped, and a row that names no split is refused or used with a warning."""
    folder = workspace.new_path("splits")
    folder.mkdir()
    for number in range(COUNT):
        Image.new("RGB", (4, 4), (40 * number, 0, 0)).save(folder / f"{number}.png")
    for number in range(workspace.count(40, 9000)):
        rows = _rows(workspace.rng)
        form = workspace.rng.choices(list(FORMS), [6, 6, 3, 3, 3])[0]
        what = f"{number}: {form} with the splits {[cell for _, _, cell in rows]}"
        yield judged(what, partial(_check, FORMS[form], folder, rows))
    for number in range(workspace.count(5, 600)):
        yield judged(f"folder {number}", partial(_check_folder, folder / "tree", workspace.rng))


def _rows(rng: Random) -> Rows:
    cells: list[str | None] = [rng.choice(USUAL) for _ in range(COUNT)]
    for _ in range(rng.choice((0, 1, 1, 2, COUNT))):
        cells[rng.randrange(COUNT)] = rng.choice(ODD)
    return [(str(i), "cat" if i % 2 else "dog", cell) for i, cell in enumerate(cells)]


def _meaning(cell: str | None) -> str | None:
    """The split that a cell names; None if it names none."""
    return SYNONYMS.get((cell or "").strip().lower())


def _check(write: Callable[[Path, Rows], Path], folder: Path, rows: Rows) -> None:
    path = write(folder, rows)
    meanings = {name: _meaning(cell) for name, _, cell in rows}
    found: dict[str, set[str]] = {}
    for split in set(meanings.values()) - {None} or {"train"}:
        examples = load(path, split=split)
        found[str(split)] = _names(examples)
        ignored = not examples.splits
        assert not ignored or not any(meanings.values()), "a column that names splits was ignored"
        blank = all((cell or "").strip() in ("", "nan", "0") for _, _, cell in rows)
        assert not ignored or blank or examples.warnings, "a column was ignored without a warning"
    for split, names in found.items():
        expected = {name for name, meaning in meanings.items() if meaning == split}
        assert names == (expected or set(meanings)), f"{split} holds {sorted(names)}, not {sorted(expected)}"


def _names(examples: Examples) -> set[str]:
    names = [Path(each).stem.lstrip("0") or "0" for each in examples.ids]
    assert len(set(names)) == len(names) == len(examples.labels)
    labels = [examples.classes[label] for label in examples.labels]
    assert labels == ["cat" if int(name) % 2 else "dog" for name in names]
    return set(names)


def _csv(folder: Path, rows: Rows) -> Path:
    path = folder / "t.csv"
    path.write_text(
        "image,label,split\n" + "".join(f"{n}.png,{label},{cell or ''}\n" for n, label, cell in rows)
    )
    return path


def _records(rows: Rows) -> list[dict[str, str | None]]:
    return [{"image": f"{name}.png", "label": label, "split": cell} for name, label, cell in rows]


def _json_lines(folder: Path, rows: Rows) -> Path:
    path = folder / "t.jsonl"
    path.write_text("\n".join(map(json.dumps, _records(rows))))
    return path


def _parquet(folder: Path, rows: Rows) -> Path:
    path = folder / "t.parquet"
    pq.write_table(pa.Table.from_pylist(_records(rows)), path)
    return path


def _npz(folder: Path, rows: Rows) -> Path:
    path = folder / "t.npz"
    np.savez(
        path,
        images=np.zeros((len(rows), 4, 4, 3), np.uint8),
        labels=np.array([label for _, label, _ in rows]),
        split=np.array([cell or "" for _, _, cell in rows]),
    )
    return path


def _tar(folder: Path, rows: Rows) -> Path:
    path = folder / "t.tar"
    with tarfile.open(path, "w") as shard:
        for name, label, cell in rows:
            values = json.dumps({"label": label, "split": cell}).encode()
            for ending, content in (("png", (folder / f"{name}.png").read_bytes()), ("json", values)):
                member = tarfile.TarInfo(f"{name}.{ending}")
                member.size = len(content)
                shard.addfile(member, io.BytesIO(content))
    return path


FORMS = {
    "CSV": _csv,
    "JSON lines": _json_lines,
    "Parquet": _parquet,
    "a NumPy archive": _npz,
    "a shard": _tar,
}


def _check_folder(root: Path, rng: Random) -> None:
    """Folders named after splits, in odd spellings, with the same classes in each."""
    shutil.rmtree(root, ignore_errors=True)
    tops = rng.sample(
        ["train", "Train", "TRAINING", "val", "Valid", "test", "Testing", "eval", "extra", "x"], 3
    )
    splits = {top: SYNONYMS.get(top.lower(), top) for top in tops}
    others = {split for top, split in splits.items() if top != "eval"}
    if "val" in others and "test" not in others:
        splits["eval"] = "test"
    written: dict[str, set[str]] = {}
    for top in tops:
        for label in ("cat", "dog"):
            (root / top / label).mkdir(parents=True)
            name = f"{top}/{label}/1.png"
            Image.new("L", (2, 2)).save(root / name)
            written.setdefault(splits[top], set()).add(name)
    seen: dict[str, set[str]] = {}
    for split in ("train", "val", "test"):
        if split in written:
            seen[split] = set(load(root, split=split).ids)
    assert all(seen[split] == written[split] for split in seen), f"{tops} were read as {seen}"
