"""`load` reads data of any supported format; `Reading` holds its options on the command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

from tracer.core.errors import UserError, near, unknown
from tracer.data.classes import classes
from tracer.data.embedded.digits import coloured_digits, digits
from tracer.data.embedded.emojishift import emoji_parts
from tracer.data.encoded import Files
from tracer.data.examples import Examples, Subset, with_white
from tracer.data.formats.arrays import read_arrays
from tracer.data.formats.folder import beside, read_folder
from tracer.data.formats.hub import PREFIX, SAVED, read_hub
from tracer.data.formats.idx import FILES, Split, idx
from tracer.data.formats.memory import PREFIX as MEMORY
from tracer.data.formats.memory import registered
from tracer.data.formats.rows import read_table
from tracer.data.formats.shards import read_shards
from tracer.data.options import Options, choose_part

EMBEDDED: dict[str, Callable[[Split, Path | None], Examples]] = {
    "digits": digits,
    "digits:coloured": coloured_digits,
    "digits:colour": partial(coloured_digits, task="colour"),
    "digits:group": partial(coloured_digits, task="group"),
    "digits:flipped": partial(coloured_digits, flipped=True),
}
BUILT_IN = "embedded:"  # prefix of a built-in set, where a file has its name
TABLES = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json", ".parquet")
METADATA = ("metadata.csv", "metadata.jsonl", "metadata.parquet")  # tables among images, as on the hub


def load(spec: str | Path, **options: Any) -> Examples:
    """The examples that `spec` names.

    A folder of images, a table (CSV, TSV, JSON lines, Parquet), webdataset shards (`x-{000..011}.tar`, any
    fsspec address), `hf:name`, a NumPy `.npz`, a folder with idx files such as MNIST's, or the embedded `digits`
    (coloured in `digits:colour` and others; `digits:colour@FOLDER` colours all of MNIST in that folder). A built-in
    name that is also a file is refused: `./digits` and `embedded:digits` say which is meant.
    `options` are the fields of `Options`; those that are not set are detected, and `Examples.detected` says how.
    """
    settings = Options(**options)
    try:
        examples = _source(str(spec), settings)
    except OSError as error:
        raise UserError(f"{spec} cannot be read: {error.strerror or error}") from error
    if settings.white_level is None:
        return examples
    return replace(examples, images=with_white(examples.images, settings.white_level))


def _source(name: str, options: Options) -> Examples:
    if name.startswith(MEMORY) and "://" not in name:  # memory:// is a file system of fsspec
        return registered(name)
    embedded = embedded_name(name)
    if embedded is not None:
        if embedded == name and Path(name).exists():
            raise UserError(
                f"{name} is a built-in data set and a file here: write ./{name} or {BUILT_IN}{name}"
            )
        return _embedded(embedded, name, options)
    if name.startswith(PREFIX):
        return read_hub(name, options)
    if "://" in name or name.endswith((".tar", ".tar}")):
        return read_shards(name, options)
    if Path(name).is_dir():
        return _directory(Path(name), options)
    if Path(name).is_file():
        return _file(Path(name), options)
    folder = Path(name).parent
    neighbours = map(str, folder.iterdir()) if folder.is_dir() else ()
    close = near(name, (*EMBEDDED, *neighbours))
    built_in = f"{', '.join(EMBEDDED)} and emoji:names:strong"
    hint = f": did you mean {' or '.join(close)}?" if close else ""
    raise UserError(f"there is no file or folder {name}{hint or f'; built-in data are {built_in}'}")


def embedded_name(name: str) -> str | None:
    """The name of a built-in data set, without the prefix `embedded:`; None if it is another source."""
    short = name.removeprefix(BUILT_IN)
    built_in = short in EMBEDDED or short.startswith(("digits:", "digits@", "emoji:"))
    return short if built_in or name != short else None


def _embedded(short: str, name: str, options: Options) -> Examples:
    if short.startswith("emoji:"):
        options.refuse(f"the emoji of {name}", "image", "caption", "label", "separator", "classes")
        return _part(name, options, *emoji_parts(short))
    kind, _, folder = short.partition("@")
    if kind not in EMBEDDED:
        raise unknown("data", kind, EMBEDDED)
    return _digits(name, options, lambda split: EMBEDDED[kind](split, Path(folder) if folder else None))


def is_data_set(path: Path) -> bool:
    """Whether a folder holds a table of its images, a saved data set, shards or idx files, not images alone."""
    names = {each.name for each in path.iterdir()}
    known = {*METADATA, *SAVED, FILES["train"][0][0], f"{FILES['train'][0][0]}.gz"}
    return bool(names & known) or any(name.endswith(".tar") for name in names)


def _directory(path: Path, options: Options) -> Examples:
    """Read a folder: a table, a saved data set, shards or MNIST if it holds their files, else images."""
    names = {each.name for each in path.iterdir()}
    for table in METADATA:
        if table in names:
            examples = read_table(path / table, options)
            whole = examples.images.images if isinstance(examples.images, Subset) else examples.images
            return beside(path, examples, {table, *(whole.paths if isinstance(whole, Files) else ())})
    if names & set(SAVED):
        return read_hub(f"{PREFIX}{path}", options)
    if any(name.endswith(".tar") for name in names):
        shards = {name for name in names if name.endswith(".tar")}
        return beside(path, read_shards(str(path), options), shards)
    if {FILES["train"][0][0], f"{FILES['train'][0][0]}.gz"} & names:
        return _digits(str(path), options, lambda split: idx(path, split, options.classes))
    examples = read_folder(path, options)
    tables = sorted(
        name for name in names if Path(name).suffix.lower() in TABLES and not name.endswith(".txt")
    )
    if not tables or examples.captioned:
        return examples
    unread = f"{path / tables[0]} is not read: if the classes or captions are in it, give it as the data"
    return replace(examples, warnings=(*examples.warnings, unread))


def _file(path: Path, options: Options) -> Examples:
    suffix = path.suffix.lower()
    if suffix in TABLES:
        return read_table(path, options)
    if suffix in (".npz", ".npy"):
        return read_arrays(path, options)
    if suffix in (".gz", ".tgz", ".zst", ".zip", ".bz2", ".xz"):
        raise UserError(f"{path} is compressed, so single images cannot be read from it: unpack it first")
    endings = ", ".join((*TABLES, ".npz", ".tar"))
    raise UserError(f"{path} is no data of a known kind: expected a folder, or a file ending in {endings}")


def _digits(name: str, options: Options, read: Callable[[Split], Examples]) -> Examples:
    """The requested split of digits, with class names from the options if there are any."""
    options.refuse(f"the digits of {name}", "image", "caption", "label", "separator")
    examples = _part(name, options, get_args(Split), read)
    # Other idx files than MNIST's have no templates, and were named by their reader.
    if options.classes is None or not examples.templates:
        return examples
    mapping = classes(examples.classes, options.classes)
    labels = mapping.labels(examples.classes)[examples.labels]
    return replace(examples, classes=mapping.names, labels=labels)


def _part(name: str, options: Options, splits: Sequence[Any], read: Callable[[Any], Examples]) -> Examples:
    """The examples that `read` gives for the requested one of these splits."""
    split = choose_part(splits, options, name)
    examples = read(split.name)
    detected = (*examples.detected, split.note)
    return replace(examples, name=name, splits=split.names, split=split.name, detected=detected)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Options that are not set are detected from the data."""

    image_column: str | None = None
    """Column of a table that holds the image's path."""
    caption_column: str | None = None
    """Column that holds the caption, or none."""
    label_column: str | None = None
    """Column that holds the class, or none."""
    separator: str | None = None
    """Separator of a table, if it is not the one detected."""
    classes: str | None = None
    """File with the class names, one a line, if the labels in the data are numbers or codes."""
    white_level: float | None = None
    """The value that is white in images of more than eight bits; by default by the largest value of all of them."""

    @property
    def _options(self) -> dict[str, Any]:
        """The fields of this class by name, without those of a subclass."""
        return {field.name: getattr(self, field.name) for field in fields(Reading)}

    @property
    def keywords(self) -> dict[str, Any]:
        """The options as keyword arguments of `load`."""
        return {name.removesuffix("_column"): value for name, value in self._options.items()}

    @property
    def flags(self) -> dict[str, str]:
        """The options that are set, as command-line flags without dashes."""
        values = {
            name: f"{value:g}" if isinstance(value, float) else value for name, value in self._options.items()
        }
        return {name.replace("_", "-"): value for name, value in values.items() if value is not None}

    def over(self, other: Reading, spec: str, others: str) -> Reading:
        """These options for `spec`, completed by those of `other` for the data `others` if both are of one kind.

        The white level is that of `other` for data of any kind: it is what a model was trained with.
        """
        if kind(spec) != kind(others):
            return Reading(**(self._options | {"white_level": self.white_level or other.white_level}))
        defaults = other._options | ({} if Path(spec).suffix == Path(others).suffix else {"separator": None})
        return Reading(**{name: value or defaults[name] for name, value in self._options.items()})


AS_FOUND = Reading()


def kind(spec: str) -> str:
    """The kind of a source: sources of one kind take the same options."""
    embedded = embedded_name(spec)
    if embedded is not None or spec.startswith(PREFIX):
        return (embedded or spec).partition(":")[0]
    suffix = Path(spec).suffix.lower()
    return "table" if suffix in TABLES else suffix
