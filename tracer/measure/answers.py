"""What a model was asked, what it answered, and a store from which a number is read for no other question."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypedDict

import torch
from jaxtyping import Float, Int
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from tracer.core.errors import UserError
from tracer.core.metrics import accuracy
from tracer.core.validation import fits
from tracer.data.examples import Examples
from tracer.data.scan import hashed
from tracer.storage.atomic import write_bytes
from tracer.storage.checksum import add_checksum, short_hash, verify_checksum
from tracer.storage.lock import lock
from tracer.storage.safetensors_io import read_weights, tensors_blake2b

Role = Literal[
    "task", "id", "ood", "retain", "names"
]  # task: the held-out set; names: those of the pretrained model
HEADER = "answers"  # the entry of a file's metadata that describes it
LONGEST = 60  # letters of a test set's name in the name of a file


class Key(NamedTuple):
    """A question: hashes of all that an answer depends on but the model. Equal keys ask the same."""

    images: str
    labels: str
    captions: str
    class_names: str
    templates: str
    rule: str

    @classmethod
    def of(
        cls,
        examples: Examples,
        classes: Sequence[str] = (),
        templates: Sequence[str] = (),
        rule: object = "",
        *,
        images: Examples | None = None,
    ) -> Key:
        """The question which of `classes`, by default those of the examples, their images show.

        Images are known by their content and order, wherever they lie and whatever they are called; labels by the
        names of their classes, in whatever order a list has these. `rule` is all else, with the white
        level: how logits become those of the examples' classes, or what is done to the images, which are then those of
        `images`.
        """
        digests, names = hashed(images or examples).digests, examples.classes
        return cls(
            images=digests["images"],
            labels=short_hash([names[label] if label >= 0 else "" for label in examples.labels.tolist()]),
            captions=digests["captions"] if examples.captioned else "",
            class_names=short_hash([sorted(classes or names), sorted(names)]),
            templates=short_hash(list(templates)),
            rule=short_hash([rule, examples.white_level]),
        )

    @property
    def digest(self) -> str:
        """A short hash of the whole question."""
        return short_hash(list(self))

    def differs(self, other: Key) -> str:
        """What is different in `other`, such as "labels and templates"; empty if nothing is."""
        names = [
            name.replace("_", " ") for name in self._fields if getattr(self, name) != getattr(other, name)
        ]
        return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


class Predictions(NamedTuple):
    """Logits in fp32, labels and image ids, in the order of the data set."""

    logits: Float[Tensor, "n k"]
    label: Int[Tensor, " n"]
    ids: Sequence[str]

    @property
    def accuracy(self) -> float:
        return accuracy(self.logits, self.label)

    @property
    def hits(self) -> list[bool]:
        """Whether the highest logit is that of the label, for each image."""
        return (accuracy.summaries(self.logits, self.label)[:, 0] == 0).tolist()

    @property
    def valid(self) -> bool:
        """Whether shapes, labels and logits are those of a classifier."""
        logits, label, ids = self
        if logits.ndim != 2 or label.ndim != 1 or not 0 < len(logits) == len(label) == len(ids):
            return False
        inside = bool(((label >= 0) & (label < logits.shape[1])).all())
        return inside and logits.is_floating_point() and bool(torch.isfinite(logits).all())


class Estimate(NamedTuple):
    """One metric on one test set, with its interval; `rule` says how it was scored."""

    data: str
    role: Role
    metric: str
    value: float
    low: float
    high: float
    n: int
    partial: bool = False
    rule: str = ""


class Number(TypedDict):
    """An estimate in a file, whose header says the rest."""

    metric: str
    value: float
    low: float
    high: float
    n: int
    partial: bool
    rule: str


class Header(TypedDict):
    """What a file says of its answers; its tensors need not be read for it."""

    name: str
    role: Role
    key: dict[str, str]
    by: str
    classes: list[str]
    source: dict[str, Any]
    estimates: list[Number]
    tensors: str  # their checksum
    order: int  # among the answers in a folder: a test set that is scored again keeps its place


@dataclass(frozen=True, eq=False)
class Answers:
    """What the weights `by` answered to the question `key` about the test set `name`.

    Read as a header alone, answers have their estimates, and neither hits nor predictions.
    """

    name: str
    role: Role
    key: Key
    by: str  # a hash of the weights, and of what else makes them a model
    estimates: tuple[Estimate, ...] = ()
    classes: tuple[str, ...] = ()  # that the labels count
    source: Mapping[str, Any] = field(
        default_factory=dict
    )  # where the images are found again, see `TestSets`
    predictions: Predictions | None = None  # over classes
    hits: tuple[bool, ...] = ()  # whether each image is right

    @classmethod
    def of(cls, name: str, role: Role, key: Key, by: str, predictions: Predictions, **more: Any) -> Answers:
        """The answers of a classifier."""
        return cls(name, role, key, by, predictions=predictions, hits=tuple(predictions.hits), **more)


class Store:
    """Answers in a folder. Only the same model asked the same gets an earlier answer again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, answers: Answers) -> None:
        """Keep answers, in place of those of this name to another question, and of those of other weights."""
        tensors = {"hits": torch.tensor(answers.hits, dtype=torch.bool)}
        if answers.predictions is not None:
            logits, label, ids = answers.predictions
            tensors |= {"logits": logits.contiguous(), "label": label.contiguous()}
            tensors["ids"] = torch.frombuffer(bytearray(json.dumps(list(ids)).encode()), dtype=torch.uint8)
        slot = _slot(answers.name, answers.role)
        file = self._file(answers.name, answers.role, answers.by, answers.key)
        header: dict[str, Any] = {
            "name": answers.name,
            "role": answers.role,
            "key": answers.key._asdict(),
            "by": answers.by,
            "classes": list(answers.classes),
            "source": dict(answers.source),
            "estimates": [
                {name: value for name, value in each._asdict().items() if name not in ("data", "role")}
                for each in answers.estimates
            ],
            "tensors": tensors_blake2b(tensors),
        }
        with lock(
            self.folder / ".lock", wait=True
        ):  # of two processes, one replaces what the other has written
            known = [*self._headers()]
            others = {path: order for path, each, order in known if _slot(each.name, each.role) == slot}
            last = max((order for _, _, order in known), default=-1)
            header["order"] = min(others.values(), default=last + 1)
            write_bytes(file, save(tensors, metadata={HEADER: json.dumps(add_checksum(header))}))
            for other in others.keys() - {file}:
                other.unlink(missing_ok=True)

    def read(self, name: str, role: Role, by: str, key: Key) -> Answers | None:
        """What `by` answered to this question; None if it was not asked, or if the file is damaged."""
        file = self._file(name, role, by, key)
        try:
            known, checksum, _ = _header(file)
            tensors = read_weights(file)
            hits = tuple(tensors["hits"].tolist())
            predictions = None
            if "logits" in tensors:
                ids = json.loads(tensors["ids"].numpy().tobytes())
                predictions = Predictions(tensors["logits"], tensors["label"], ids)
        except (UserError, SafetensorError, OSError, KeyError, ValueError, RecursionError):
            return None
        same = (known.name, known.role, known.by, known.key) == (name, role, by, key)
        if not same or checksum != tensors_blake2b(tensors) or not (predictions is None or predictions.valid):
            return None
        return Answers(name, role, key, by, known.estimates, known.classes, known.source, predictions, hits)

    def all(self, by: str | None = None, notes: list[str] | None = None) -> list[Answers]:
        """The headers of what `by` answered, or anybody if it is None, in the order in which they were first written.

        A file that cannot be read adds a note.
        """
        ordered = sorted(self._headers(notes), key=lambda entry: entry[2])
        return [each for _, each, _ in ordered if by in (None, each.by)]

    def near(self, name: str, role: Role, by: str, key: Key) -> str:
        """What is different in the answers that would be replaced, such as "weights and labels"; else empty."""
        known = next((each for each in self.all() if _slot(each.name, each.role) == _slot(name, role)), None)
        if known is None:
            return ""
        return " and ".join(filter(None, ("" if known.by == by else "weights", known.key.differs(key))))

    def _file(self, name: str, role: Role, by: str, key: Key) -> Path:
        """One file for each question and model: names that differ, if only by case or a slash, have other hashes."""
        readable = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "_" for c in name)[:LONGEST]
        return self.folder / f"{readable}-{short_hash([_slot(name, role), by, list(key)], 6)}.safetensors"

    def _headers(self, notes: list[str] | None = None) -> Iterator[tuple[Path, Answers, int]]:
        for file in sorted(self.folder.glob("*.safetensors")):
            try:
                known, _, order = _header(file)
            except (SafetensorError, OSError, ValueError) as error:
                if notes is not None:
                    notes.append(f"{self.folder.name}/{file.name} is not readable: {error}")
                continue
            yield file, known, order


def _slot(name: str, role: Role) -> tuple[str, bool]:
    """What answers are replaced by: a test set may be called as the held-out set is."""
    return name, role == "task"


def _header(file: Path) -> tuple[Answers, str, int]:
    """The answers of a file without their tensors, the checksum of these, and its order; ValueError if it has none."""
    with safe_open(file, "pt") as content:
        value = verify_checksum((content.metadata() or {}).get(HEADER, ""), required=True)
    if not fits(value, Header) or value["key"].keys() != set(Key._fields):
        raise ValueError("it does not hold answers")
    name, role = value["name"], value["role"]
    numbers = [{key: each[key] for key in Number.__annotations__} for each in value["estimates"]]
    finite = (each for each in numbers if all(math.isfinite(each[end]) for end in ("value", "low", "high")))
    estimates = tuple(Estimate(name, role, **each) for each in finite)
    known = Answers(
        name, role, Key(**value["key"]), value["by"], estimates, tuple(value["classes"]), value["source"]
    )
    return known, value["tensors"], value["order"]
