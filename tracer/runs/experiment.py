"""What is to be run: everything that decides the outcome, and nothing else."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_type_hints

from tracer.data.reading import Reading
from tracer.core.errors import UserError, unknown
from tracer.methods.base import options
from tracer.core.validation import fits

# The least that a number may be, and whether it may be that; none of them may be NaN or infinite.
LEAST = {
    **dict.fromkeys(("lr", "decay", "warmup", "seed"), (0, True)),
    **dict.fromkeys(("epochs", "clip", "steps", "batch"), (0, False)),
}


# Settings added after the first committed results: at their default they are left out of the id.
LATER: dict[str, Any] = {"compile": False, "decode": "draft"}

# Settings renamed since version 0.1, by their old names, which ids and older run folders keep.
RENAMED = {"tether": "regularizer"}


@dataclass(frozen=True, kw_only=True)
class Source:
    """Apart, so that it comes before how it is read."""

    data: str
    """Training data: a folder of images, a table (CSV, TSV, JSONL, Parquet), shards, or an embedded name."""


@dataclass(frozen=True, kw_only=True)
class Settings(Reading, Source):
    """What is the same for every method. What is None is settled by the data (`tracer.runs.plan`)."""

    held_out: str | None = None
    """Held-out data; by default 2 % of the training data, at least one image a class."""
    retain: tuple[str, ...] = ()
    """Data sets whose zero-shot accuracy should survive; measured before and after."""
    templates: str | None = None
    """Prompts that make captions of class names: openai (80, the default), simple (7), name, or a file."""

    model: str = "ViT-B-16"
    """A model of open_clip (`tracer list models`), a folder with an export, a config JSON, or hf-hub:NAME."""
    pretrained: str = "auto"
    """Weights: a tag of open_clip, a file, or none for a random start. auto takes OpenAI's."""

    epochs: float | None = None
    """Passes over the data; by default 10, or 20 below 5 000 images."""
    steps: int | None = None
    """Optimiser steps, instead of epochs."""
    batch: int | None = None
    """Images a step; by default an eighth of the data, at most 128."""
    chunk: int | None = None
    """Images in memory at once, for a batch that does not fit: the same gradients for one more forward."""
    checkpointing: bool = False
    """Keep the input of each block alone and compute the rest again: the same gradients, less memory, slower."""
    compile: bool = False
    """Compile both towers with torch.compile: minutes at the start, faster steps, the same up to rounding."""
    lr: float = 1e-5
    """Peak learning rate of AdamW."""
    warmup: float | None = None
    """Warm-up: a share of training below 1, steps from 1 on; by default 2 %, and up to 50 steps in short runs."""
    decay: float = 0.1
    """Weight decay."""
    decay_on: Literal["matrices", "all"] = "matrices"
    """What decays: matrices only, or all parameters as in the released recipes."""
    clip: float | None = None
    """Clip the gradient's norm."""
    regularizer: str | None = None
    """Attached weights to the pretrained ones under any method: l2sp:0.1, ftp, spd; the last two with --decay 0."""
    augment: Literal["none", "crop", "crop+flip"] = "crop+flip"
    """Random crops of 90 to 100 % and mirror images; choose crop or none where left and right matter."""
    decode: Literal["draft", "full"] = "draft"
    """How JPEGs far larger than needed are read in training: at a half to an eighth, or in full."""
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    """auto: bf16 where the hardware has it."""
    strict: bool = False
    """Refuse the data if any image is unreadable, instead of naming and skipping it."""
    seed: int = 0
    """Decides order, captions and augmentation."""


@dataclass(frozen=True, kw_only=True)
class Experiment(Settings):
    """Everything that decides the outcome of a run: a method with its options, and the settings."""

    method: str = "tracer"
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, (least, included) in LEAST.items():
            value = getattr(self, name)
            if value is not None and not (least < value < math.inf or (included and value == least)):
                bound = f"at least {least}" if included else f"more than {least}"
                raise UserError(f"{name} {value}: expected a number, {bound}")

    @property
    def id(self) -> str:
        """A short hash: the same experiment has the same id, on any machine, however much of it was said."""
        former = {new: old for old, new in RENAMED.items()}
        settled = {
            former.get(name, name): value
            for name, value in asdict(self).items()
            if LATER.get(name, ...) != value
        }
        usual = {option.name: option.default for option in options(self.method)}
        chosen = {name: value for name, value in self.options.items() if usual.get(name, ...) != value}
        canonical = json.dumps({**settled, "options": chosen}, sort_keys=True, default=str)
        return hashlib.blake2b(canonical.encode(), digest_size=5).hexdigest()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: object) -> Experiment:
        """The experiment that `to_json` wrote; what is not one is refused, name by name and type by type."""
        if not isinstance(value, dict):
            raise UserError(f"expected the settings of an experiment, found {value!r:.60}")
        value = {RENAMED.get(name, name): given for name, given in value.items()}
        names, hints = {f.name for f in fields(cls)}, get_type_hints(cls)
        for name, given in value.items():
            if name not in names:
                raise unknown("setting in experiment.json", name, names)
            if not fits(given, hints[name]):
                raise UserError(f"the setting {name} in experiment.json cannot be {given!r:.60}")
        if "data" not in value:
            raise UserError("the experiment has no data")
        return cls(**{**value, "retain": tuple(value.get("retain", ()))})
