"""Data sets of the Hugging Face `datasets` library, by name or from a local folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracer.core.errors import UserError
from tracer.data.classes import readable_name, refuse_one_name
from tracer.data.encoded import Encoded, read_image
from tracer.data.examples import Examples, assemble
from tracer.data.formats.columns import SPLIT, column, find_columns, row_splits
from tracer.data.formats.values import text
from tracer.data.options import WHOLE, Options, Split, choose_part, splits_by_name

PREFIX = "hf:"
SAVED = ("dataset_dict.json", "state.json")  # files that `save_to_disk` writes into a folder


@dataclass(frozen=True)
class HubImages(Encoded):
    """The encoded images of one column of a data set."""

    dataset: Any
    column: str
    source: str

    def __len__(self) -> int:
        return len(self.dataset)

    def content(self, index: int) -> bytes:
        image = self.dataset[index][self.column] or {}
        if image.get("bytes") is not None:
            return image["bytes"]
        if not image.get("path"):
            raise OSError("there is no image in this row")
        return read_image(Path(image["path"]))

    def name(self, index: int) -> str:
        return f"{index} of {self.source}"


def read_hub(spec: str, options: Options) -> Examples:
    """The examples of `hf:name`, `hf:name:configuration`, or `hf:` and a local folder or Parquet file."""
    options.refuse("a data set of the hub", "separator")
    return _examples(_splits(_load(spec.removeprefix(PREFIX))), options, spec)


def from_datasets(data: Any, options: Options) -> Examples:
    """The examples of a `datasets.Dataset`, or of the training split of a `datasets.DatasetDict`."""
    return _examples(_splits(data), options, "a Hugging Face data set")


def _examples(parts: dict[str, Any], options: Options, spec: str) -> Examples:
    """The examples of one split, whose classes are numbered over all of them."""
    import datasets

    name, split = _part(parts, options, spec) if len(parts) > 1 else (next(iter(parts)), WHOLE)
    dataset = parts[name]
    images = [name for name, kind in dataset.features.items() if isinstance(kind, datasets.Image)]
    image = images[0] if images and options.image is None else None
    columns = find_columns(tuple(dataset.column_names), options, spec, image=image)
    if len(parts) == 1:
        splits = row_splits({each: dataset[each] for each in _split_columns(dataset)}, columns, spec)
        split = splits.choose(options, spec)
        if not splits.of_row:
            _part(parts, options, spec)  # which refuses a split that is not there
    kind = dataset.features[columns.label] if columns.label else None
    names = tuple(kind.names) if isinstance(kind, datasets.ClassLabel) else ()
    keys = {each: _keys(part, columns.label, names) for each, part in parts.items()} if columns.label else {}
    if options.classes is None:
        refuse_one_name(names)
    from_data = {each: readable_name(each) for each in names} or None
    return assemble(
        spec,
        encoded_images(dataset, columns.image, f"{spec} ({name})"),
        [f"{name}/{i:07d}" for i in range(len(dataset))],
        keys=keys.get(name),
        vocabulary=(key for each in keys.values() for key in each),
        naming=from_data if options.classes is None else options.classes,
        captions=columns.captions(dataset, spec),
        split=split,
        detected=columns.detected(),
    )


def _part(parts: Iterable[str], options: Options, spec: str) -> tuple[str, Split]:
    """The part that is the requested split, and that split."""
    split_of, name_of = splits_by_name(parts), dict[str, str]()
    for name in parts:
        if (other := name_of.setdefault(split_of.get(name, name), name)) != name:
            raise UserError(f"{spec} has two splits {split_of[name]}, {other} and {name}: rename one")
    split = choose_part(list(name_of), options, spec)
    return name_of[split.name], split


def read_parquet_file(path: Path) -> Any:
    """A Parquet file as a `datasets.Dataset`, which keeps its rows on disk."""
    with _datasets(str(path)) as datasets:
        shown = not datasets.are_progress_bars_disabled()
        datasets.disable_progress_bars()  # a line for each file, beside tracer's own progress
        try:
            return datasets.load_dataset("parquet", data_files=str(path), split="train")
        finally:
            if shown:
                datasets.enable_progress_bars()


def _load(where: str) -> Any:
    """A data set by name, or from a folder or file. Loading scripts that come with a data set are never run."""
    if Path(where).is_file():
        return read_parquet_file(Path(where))
    with _datasets(where) as datasets:
        if any((Path(where) / each).is_file() for each in SAVED):
            return datasets.load_from_disk(where)
        name, _, configuration = where.partition(":")
        return datasets.load_dataset(name, configuration or None)


@contextmanager
def _datasets(where: str) -> Iterator[Any]:
    """The datasets library. Raises UserError if it, or the data that are loaded with it, are not there."""
    try:
        import datasets
        from datasets.exceptions import DatasetsError
    except ImportError as error:
        raise UserError(f"{where} needs the datasets library: pip install 'tracer-clip[data]'") from error
    try:
        yield datasets
    except (OSError, ValueError, RuntimeError, DatasetsError) as error:
        raise UserError(f"the data set {where!r} cannot be loaded: {error}") from error


def _splits(data: Any) -> dict[str, Any]:
    """The splits of a `Dataset` or `DatasetDict`, by name."""
    import datasets

    if isinstance(data, datasets.Dataset):
        return {str(data.split or "train"): data.with_format(None)}
    if isinstance(data, datasets.DatasetDict):
        return {str(split): part.with_format(None) for split, part in data.items()}
    raise UserError(f"a {type(data).__name__} cannot be read: expected a Dataset or a DatasetDict")


def _split_columns(dataset: Any) -> list[str]:
    """Columns that may say which split a row belongs to: the one called so, and those of text, or of yes and no."""
    called = column(dataset.column_names, None, SPLIT)
    kinds = {name: getattr(kind, "dtype", "") for name, kind in dataset.features.items()}
    return [
        name for name, kind in kinds.items() if name == called or kind in ("string", "large_string", "bool")
    ]


def encoded_images(dataset: Any, column: str, source: str) -> HubImages:
    """The images of a column that holds them, or their paths."""
    import datasets

    kind = dataset.features[column]
    if not isinstance(kind, datasets.Image | dict) and getattr(kind, "dtype", "") not in ("binary", "string"):
        raise UserError(f"the column {column} of {source} holds no images but {kind}")
    encoded = dataset.select_columns([column]).cast_column(column, datasets.Image(decode=False))
    return HubImages(encoded, column, source)


def column_of_images(given: Any, source: str) -> HubImages:
    """The images of one split of a data set, in its first column that holds some."""
    import datasets

    features = getattr(given, "features", None) or {}
    columns = [name for name, kind in features.items() if isinstance(kind, datasets.Image)]
    if not columns or not isinstance(given, Sized):
        raise UserError(
            f"images cannot be a {type(given).__name__}: give one split of the data set, with a column of images"
        )
    return encoded_images(given, columns[0], source)


def _keys(dataset: Any, label: str, names: tuple[str, ...]) -> list[str]:
    values = list(dataset[label])
    if not names:
        return [text(value) for value in values]
    if len(set(names)) < len(names):  # two classes of one name: only their numbers tell them apart
        return [text(value) if value is not None and value >= 0 else "" for value in values]
    return [class_name(value, names, f"the column {label}") or "" for value in values]


def class_name(label: Any, names: Sequence[str], where: str) -> str | None:
    """The name of a label that counts from 0; None if it is missing or −1."""
    if label is None or label == -1:
        return None
    if not isinstance(label, int) or not 0 <= label < len(names):
        raise UserError(
            f"{where}: label {label!r:.60} is none of its {len(names)} classes, which count from 0"
        )
    return names[label]
