"""What a model says of images, a row for each: `tracer predict`.

Images are answered in blocks, and each block is written down before the next, so that memory does not grow with their
number and a command that was stopped goes on where it was.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from tracer.core.errors import UserError
from tracer.data.encoded import Encoded, Files, hash_image
from tracer.data.examples import Examples, origin
from tracer.data.formats.folder import image_files
from tracer.data.images import images_of
from tracer.evaluation.model import Model
from tracer.report.chart import spreadsheet_cell
from tracer.runs.identity import short_hash
from tracer.storage.atomic import write_file, write_text
from tracer.storage.lock import lock
from tracer.storage.safetensors_io import tensors_blake2b

BLOCK, PART = 1024, 64  # images that are answered at once; fewer where one of them cannot be read
ASKED = ".asked"  # in a folder of sorted images: the question that they answer
FORMATS = (".csv", ".jsonl", ".parquet")


class Answer(NamedTuple):
    """A row: the most probable classes of an image, or why it cannot be read."""

    file: str
    top: tuple[tuple[str, float], ...] = ()
    problem: str = ""

    @property
    def probability(self) -> float:
        return self.top[0][1]

    @property
    def margin(self) -> float:
        """By how much the first class is more probable than the second."""
        return self.top[0][1] - self.top[1][1]

    def name(self, sure: float = 0.0) -> str:
        """The class; empty if the image cannot be read or its class is less probable than `sure`."""
        return self.top[0][0] if self.top and self.probability >= sure else ""


def images_at(places: Sequence[str]) -> Examples:
    """The images in these files and folders, or of one data set that `tracer eval` reads."""
    if "" in places:
        raise UserError("the name of an image is empty")
    if len(places) == 1:
        return images_of(places[0])
    paths = [
        [str(Path(place) / each) for each in image_files(Path(place))] if Path(place).is_dir() else [place]
        for place in places
    ]
    names = [*chain(*paths)]
    if not names:
        raise UserError(f"no images in {' and '.join(places)}")
    return images_of(names)


def answers(
    model: Model,
    images: Examples,
    classes: Sequence[str] | None = None,
    templates: Any = None,
    top: int = 5,
    skip: int = 0,
) -> Iterator[list[Answer]]:
    """The answers in blocks, in the order of the images, without the first `skip` ones."""
    most = max(2, top)  # the margin needs two
    for start in range(skip, len(images), BLOCK):
        rows = range(start, min(start + BLOCK, len(images)))
        try:
            block = _told(model, images, rows, classes, templates, most)
        except UserError:  # an image cannot be read, or it is no matter of images
            parts = (rows[at : at + PART] for at in range(0, len(rows), PART))
            block = [
                row
                for part in parts
                for row in _told_where_readable(model, images, part, classes, templates, most)
            ]
        yield block


def _told(
    model: Model,
    images: Examples,
    rows: Sequence[int],
    classes: Sequence[str] | None,
    templates: Any,
    top: int,
) -> list[Answer]:
    part = images.take(np.array(rows, int))
    return [
        Answer(each.image, each.top) for each in model.predict(part, classes, templates=templates, top=top)
    ]


def _told_where_readable(
    model: Model,
    images: Examples,
    rows: Sequence[int],
    classes: Sequence[str] | None,
    templates: Any,
    top: int,
) -> list[Answer]:
    """The answers for a few images, of which some may not be readable."""
    with suppress(UserError):
        return _told(model, images, rows, classes, templates, top)
    problems = {row: problem for row in rows if (problem := _problem(images, row))}
    readable = [row for row in rows if row not in problems]
    told = dict(zip(readable, _told(model, images, readable, classes, templates, top), strict=True))
    return [told.get(row) or Answer(images.ids[row], problem=problems[row]) for row in rows]


def _problem(images: Examples, index: int) -> str:
    """Why an image cannot be read; empty if it can."""
    try:
        images.images[index]
    except UserError as error:
        return str(error)
    return ""


def question(model: Model, images: Examples, classes: Sequence[str] | None, templates: Any, top: int) -> str:
    """A hash of the model and of all that is asked of it but the images."""
    student = model.student
    whole = [
        tensors_blake2b(student.state_dict()),
        student.config,
        repr(student.preprocess_cfg),
        student.white_level,
    ]
    return short_hash([*whole, repr(model.task), classes, templates, top, images.white_level])


def _stamp(images: Examples, index: int) -> str:
    """What tells an image from another of its name: where its file lies, its size and time, or its content."""
    stored, number = origin(images.images, index)
    if not isinstance(stored, Encoded):
        return hash_image(stored, number, None).hex()
    if stored.place is None:
        return stored.name(number)
    path, part = stored.file(number)
    try:
        status = path.stat()
    except OSError:
        return f"{path} {part}"
    return f"{path} {part} {status.st_size} {status.st_mtime_ns}"


def recorded(
    blocks: Callable[[int], Iterable[list[Answer]]], images: Examples, asked: str, record: Path
) -> Iterator[Answer]:
    """All answers, through a file of those that are there: `blocks(n)` gives those after the first n.

    A record of another question, or of other images, is begun anew.
    """
    with record.open("a+", encoding="utf-8", errors="surrogateescape") as file:
        count = _known(file, asked, images)
        for block in blocks(count):
            stamps = (_stamp(images, count + number) for number in range(len(block)))
            file.writelines(
                f"{json.dumps([*row, stamp])}\n" for row, stamp in zip(block, stamps, strict=True)
            )
            file.flush()
            count += len(block)
        file.seek(0)
        next(file)
        for line in file:
            yield _answer(line)


def _known(file: IO[str], asked: str, images: Examples) -> int:
    """How many answers of a record can be kept; the file ends behind them."""
    file.seek(0)
    count, end = 0, 0
    if file.readline() == f"{json.dumps(asked)}\n":
        end = file.tell()
        for number, image in enumerate(images.ids):
            line = file.readline()
            if not line.endswith("\n") or (json.loads(line)[0], json.loads(line)[-1]) != (
                image,
                _stamp(images, number),
            ):
                break
            count, end = count + 1, file.tell()
    file.seek(end)
    file.truncate()
    if not end:
        file.write(f"{json.dumps(asked)}\n")
    return count


def _answer(line: str) -> Answer:
    file, top, problem, _ = json.loads(line)
    return Answer(file, tuple((name, share) for name, share in top), problem)


def require_format(out: Path) -> None:
    """Raise UserError if the name of a table says no format that can be written."""
    if out.suffix.lower() not in FORMATS:
        raise UserError(f"--out {out}: name a file that ends in {', '.join(FORMATS)}")
    if out.suffix.lower() == ".parquet":
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError as error:
            raise UserError("Parquet needs pyarrow: pip install 'tracer-clip[data]'") from error


def write_answers(rows: Iterable[Answer], out: Path, top: int, sure: float) -> None:
    """Write a table atomically, as CSV, JSON lines or Parquet, by its name."""
    columns = ["file", "class", "probability", "margin"]
    columns += [f"{what}_{place}" for place in range(2, top + 1) for what in ("class", "probability")]
    columns.append("problem")
    fill = {".csv": _csv, ".jsonl": _jsonl, ".parquet": _parquet}[out.suffix.lower()]
    write_file(out, lambda temporary: fill((_values(row, top, sure) for row in rows), columns, temporary))


def _values(row: Answer, top: int, sure: float) -> list[Any]:
    if not row.top:
        return [row.file, "", None, None, *[None] * (2 * top - 2), row.problem]
    others = [value for pair in row.top[1:top] for value in pair]
    others += [None] * (2 * top - 2 - len(others))
    return [row.file, row.name(sure), row.probability, row.margin, *others, row.problem]


def _csv(rows: Iterable[list[Any]], columns: list[str], path: Path) -> None:
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for row in rows:
            writer.writerow([spreadsheet_cell(cell) if isinstance(cell, str) else cell for cell in row])


def _jsonl(rows: Iterable[list[Any]], columns: list[str], path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(dict(zip(columns, row, strict=True)))}\n" for row in rows)


def _parquet(rows: Iterable[list[Any]], columns: list[str], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts = ("file", "class", "problem")
    schema = pa.schema(
        [(name, pa.string() if name.partition("_")[0] in texts else pa.float64()) for name in columns]
    )
    rows = iter(rows)
    with pq.ParquetWriter(path, schema) as writer:
        while block := list(islice(rows, BLOCK)):
            values = zip(*([_utf8(cell) for cell in row] for row in block), strict=True)
            arrays = [pa.array(column, field.type) for column, field in zip(values, schema, strict=True)]
            writer.write_table(pa.table(arrays, schema=schema))


def _utf8(cell: Any) -> Any:
    """Text that is UTF-8; a file name may hold other bytes."""
    return cell.encode(errors="backslashreplace").decode() if isinstance(cell, str) else cell


def file_of(images: Examples, index: int) -> Path:
    """The file of an image; UserError if it is no file."""
    stored, number = origin(images.images, index)
    if not isinstance(stored, Files):
        raise UserError("--sort needs images that are files: give files or a folder of them")
    return stored.file(number)[0]


def require_sortable(folder: Path, images: Examples, places: Sequence[str], asked: str) -> None:
    """Raise UserError if images cannot be sorted into this folder: it is new, empty, or of the same question."""
    if len(images):
        file_of(images, 0)
    for place in map(Path, places):
        if place.is_dir() and folder.resolve().is_relative_to(place.resolve()):
            raise UserError(
                f"--sort {folder} lies in {place}, whose images are sorted: give a folder outside of it"
            )
    note = folder / ASKED
    if folder.exists() and any(folder.iterdir()) and not (note.is_file() and note.read_text() == asked):
        raise UserError(
            f"--sort {folder} is not empty, or holds the answers to another question: give a new folder"
        )
    write_text(note, asked)


def sort_into(folder: Path, name: str, source: Path) -> None:
    """Put a link to an image, or a copy where there can be no link, into the folder of its class.

    Names of classes become names of folders one to one. No file is replaced: images of one name are numbered.
    """
    place = folder / _folder_name(name)
    place.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        target = place / (source.name if number == 1 else f"{source.stem}-{number}{source.suffix}")
        try:
            _link(source, target)
        except FileExistsError:
            if _same(source, target):
                return
            number += 1
        else:
            return


def _link(source: Path, target: Path) -> None:
    """Raises FileExistsError if there is a file."""
    try:
        os.link(source.resolve(), target)
    except FileExistsError:
        raise
    except OSError:  # another file system, or one without links
        with target.open("xb") as copy, source.open("rb") as file:
            shutil.copyfileobj(file, copy)


def _folder_name(name: str) -> str:
    """A name as that of a folder, one to one: signs that may not stand there are written as in an address."""
    return re.sub(r'[\x00-\x1f/\\:*?"<>|%\x7f]|^\.|[. ]$', lambda sign: f"%{ord(sign[0]):02X}", name)


def _same(one: Path, other: Path) -> bool:
    with suppress(OSError):
        if one.samefile(other):
            return True
        return one.stat().st_size == other.stat().st_size and one.read_bytes() == other.read_bytes()
    return False


@contextmanager
def unfinished(out: Path) -> Iterator[Path]:
    """The file in which the answers of a table lie until it is written; one process has it at a time."""
    record = out.with_name(f".{out.name}.unfinished")
    with lock(record) as mine:
        if not mine:
            raise UserError(f"another process is writing {out}: wait for it, or give another --out")
        yield record
        record.unlink(missing_ok=True)
