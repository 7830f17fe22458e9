"""Data sets of the Hugging Face `datasets` library, by name or from a local folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracer.core.errors import UserError
from tracer.data.assembly import assembled
from tracer.data.classes import spoken
from tracer.data.columns import columns
from tracer.data.encoded import Encoded
from tracer.data.examples import Examples
from tracer.data.options import Options
from tracer.data.values import text, texts

PREFIX = "hf:"
SAVED = ("dataset_dict.json", "state.json")  # what `save_to_disk` leaves in a folder


@dataclass(frozen=True)
class Stored(Encoded):
    """The encoded images of one column of a data set."""

    dataset: Any
    column: str
    source: str

    def __len__(self) -> int:
        return len(self.dataset)

    def content(self, index: int) -> bytes:
        image = self.dataset[index][self.column]
        return image["bytes"] if image["bytes"] is not None else Path(image["path"]).read_bytes()

    def name(self, index: int) -> str:
        return f"{index} of {self.source}"


def hosted(spec: str, options: Options) -> Examples:
    """The examples of `hf:name`, `hf:name:configuration`, or `hf:` and a local folder or Parquet file."""
    options.refuse("a data set of the hub", "separator")
    found = _loaded(spec.removeprefix(PREFIX))
    split = options.choose(tuple(found), spec)
    dataset = found[split]
    used = columns(tuple(dataset.column_names), options, spec, image=_image(dataset, options))
    names = _names(dataset, used.label)
    written = {each: _keys(part, used.label, names) for each, part in found.items()} if used.label else {}
    naming = {name: spoken(name) for name in names} if names and options.classes is None else options.classes
    return assembled(
        spec,
        _stored(dataset, used.image, f"{spec} ({split})"),
        [f"{split}/{i:07d}" for i in range(len(dataset))],
        keys=written.get(split),
        vocabulary=(key for keys in written.values() for key in keys),
        naming=naming,
        captions=[texts(value) for value in dataset[used.caption]] if used.caption else None,
        splits=tuple(found) if len(found) > 1 else (),
        detected=(*used.detected, f"split: {split} of {', '.join(found)}"),
    )


def _loaded(where: str) -> dict[str, Any]:
    """The splits of a data set, by name. Code that comes with a data set is never run."""
    try:
        import datasets
        from datasets.exceptions import DatasetsError
    except ImportError as error:
        raise UserError("hf: needs the datasets library: pip install 'tracer-clip[data]'") from error
    name, _, configuration = where.partition(":")
    try:
        if any((Path(where) / each).is_file() for each in SAVED):
            found = datasets.load_from_disk(where)
        elif Path(where).is_file():
            found = datasets.load_dataset("parquet", data_files=where)
        else:
            found = datasets.load_dataset(name, configuration or None)
    except (OSError, ValueError, RuntimeError, DatasetsError) as error:
        raise UserError(f"the data set {where!r} cannot be loaded: {error}") from error
    parts = {found.split or "train": found} if isinstance(found, datasets.Dataset) else found
    return {str(split): part for split, part in parts.items()}


def _image(dataset: Any, options: Options) -> str | None:
    """The column that holds images by its type, if none was told."""
    import datasets

    typed = [name for name, kind in dataset.features.items() if isinstance(kind, datasets.Image)]
    return typed[0] if typed and options.image is None else None


def _stored(dataset: Any, column: str, source: str) -> Stored:
    import datasets

    kind = dataset.features[column]
    if not isinstance(kind, datasets.Image | dict) and getattr(kind, "dtype", "") not in ("binary", "string"):
        raise UserError(f"the column {column} of {source} holds no images but {kind}")
    encoded = dataset.select_columns([column]).cast_column(column, datasets.Image(decode=False))
    return Stored(encoded, column, source)


def _names(dataset: Any, label: str | None) -> tuple[str, ...]:
    """The names of the classes, if the label column knows them."""
    import datasets

    kind = dataset.features[label] if label else None
    return tuple(kind.names) if isinstance(kind, datasets.ClassLabel) else ()


def _keys(dataset: Any, label: str, names: tuple[str, ...]) -> list[str]:
    values = list(dataset[label])
    if not names:
        return [text(value) for value in values]
    return [names[value] if value is not None and value >= 0 else "" for value in values]
