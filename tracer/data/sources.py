"""Everybody's data: one function that looks at what it is given and reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tracer.core.errors import UserError, unknown
from tracer.data.arrays import arrayed
from tracer.data.classes import Spec, classes
from tracer.data.digits import coloured, digits
from tracer.data.emojishift import named_emoji
from tracer.data.examples import Examples
from tracer.data.folder import foldered
from tracer.data.hub import PREFIX, SAVED, hosted
from tracer.data.idx import FILES, Split, idx
from tracer.data.options import Options
from tracer.data.rows import tabled
from tracer.data.shards import sharded

EMBEDDED: dict[str, Callable[[Split, Path | None], Examples]] = {
    "digits": digits,
    "digits:coloured": lambda split, folder: coloured(split, folder=folder),
    "digits:colour": lambda split, folder: coloured(split, task="colour", folder=folder),
    "digits:group": lambda split, folder: coloured(split, task="group", folder=folder),
    "digits:flipped": lambda split, folder: coloured(split, flipped=True, folder=folder),
}
TABLES = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json", ".parquet")
METADATA = ("metadata.csv", "metadata.jsonl", "metadata.parquet")  # the hub's name for a table among images


def load(
    spec: str | Path,
    *,
    image: str | None = None,
    caption: str | None = None,
    label: str | None = None,
    separator: str | None = None,
    classes: Spec | None = None,
    split: str | None = None,
) -> Examples:
    """The examples that `spec` names.

    A folder of images, a table (CSV, TSV, JSON lines, Parquet), webdataset shards (`x-{000..011}.tar`, any
    fsspec address), `hf:name`, a NumPy `.npz`, a folder with MNIST's idx files, or the embedded `digits`
    (`digits:colour` and others are painted; `digits:colour@FOLDER` paints all of MNIST in that folder).
    What is not said is looked for, and what was found is told in `Examples.detected`. `split` picks one where
    the source has several: training data if it is left out. `caption="none"`, `label="none"` ignore a column.
    """
    try:
        return _source(str(spec), Options(image, caption, label, separator, classes, split))
    except OSError as error:
        raise UserError(f"{spec} cannot be read: {error.strerror or error}") from error


def _source(name: str, options: Options) -> Examples:
    if name in EMBEDDED or name.startswith(("digits:", "digits@")):
        return _embedded(name, options)
    if name.startswith("emoji:"):
        return named_emoji(name, options)
    if name.startswith(PREFIX):
        return hosted(name, options)
    if "://" in name or name.endswith((".tar", ".tar}")):
        return sharded(name, options)
    if Path(name).is_dir():
        return _directory(Path(name), options)
    if Path(name).is_file():
        return _file(Path(name), options)
    raise unknown("data", name, (*EMBEDDED, *_neighbours(Path(name))))


def _embedded(name: str, options: Options) -> Examples:
    kind, _, folder = name.partition("@")
    if kind not in EMBEDDED:
        raise unknown("data", kind, EMBEDDED)
    return _either_split(lambda split: EMBEDDED[kind](split, Path(folder) if folder else None), options, name)


def _directory(path: Path, options: Options) -> Examples:
    """A folder holds a table, a saved data set, shards or MNIST, each with its mark, or else images."""
    inside = {each.name for each in path.iterdir()}
    for name in METADATA:
        if name in inside:
            return tabled(path / name, options)
    if inside & set(SAVED):
        return hosted(f"{PREFIX}{path}", options)
    if any(name.endswith(".tar") for name in inside):
        return sharded(str(path), options)
    if {FILES["train"][0][0], f"{FILES['train'][0][0]}.gz"} & inside:
        return _either_split(lambda split: idx(path, split), options, str(path))
    return foldered(path, options)


def _file(path: Path, options: Options) -> Examples:
    suffix = path.suffix.lower()
    if suffix in TABLES:
        return tabled(path, options)
    if suffix in (".npz", ".npy"):
        return arrayed(path, options)
    if suffix in (".gz", ".tgz", ".zst", ".zip", ".bz2", ".xz"):
        raise UserError(f"{path} is compressed, so single images cannot be read from it: unpack it first")
    known = ", ".join((*TABLES, ".npz", ".tar"))
    raise UserError(f"{path} is no data of a known kind: expected a folder, or a file ending in {known}")


def _either_split(source: Callable[[Split], Examples], options: Options, name: str) -> Examples:
    options.refuse(f"the digits of {name}", "image", "caption", "label", "separator")
    splits: tuple[Split, ...] = ("train", "test")
    chosen = options.choose(splits, name)
    found = source("test" if chosen == "test" else "train")
    if options.classes is not None:
        named = classes(found.classes, options.classes)
        found = replace(found, classes=named.names, labels=named.labels(found.classes)[found.labels])
    return replace(found, name=name, splits=splits, detected=(f"split: {chosen} of {', '.join(splits)}",))


def _neighbours(path: Path) -> list[str]:
    """What lies where `path` was looked for, spelt as `path` is."""
    if not path.parent.is_dir():
        return []
    return [str(each) for each in path.parent.iterdir()]
