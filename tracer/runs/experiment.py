"""The settings of a run: everything that determines its result, and nothing else."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from typing import Any, Literal, get_type_hints

import numpy as np

from tracer.core.errors import UserError, unknown
from tracer.core.validation import fits, require
from tracer.data.sources import Reading
from tracer.methods.base import options
from tracer.models.adapters import adapter
from tracer.models.registry import ModelSource, locate, pretrained_tag
from tracer.models.student import Student, load

# Lower bound of each number, and whether the bound itself is allowed. NaN and infinity never are.
LOWER_BOUNDS = {
    **dict.fromkeys(("lr", "decay", "warmup", "seed", "held_out_share", "test_share"), (0, True)),
    **dict.fromkeys(("epochs", "clip", "steps", "batch"), (0, False)),
}


# Settings added after the first published results. At their default they do not enter the id, so that old ids stay.
ADDED: dict[str, Any] = {
    "compile": False,
    "decode": "draft",
    "clamp_scale": True,
    "held_out_share": None,
    "test_share": None,
    "skip_unreadable": False,
    "adapter": None,
    "white_level": None,
}

FIRST_SHARE = 0.02  # held out by version 0.1, whose experiments do not name a share

# Old to new names of settings renamed since version 0.1. Ids and older run folders keep the old names.
RENAMED = {"tether": "regularizer"}


@dataclass(frozen=True, kw_only=True)
class Source:
    """A class of its own, so that --data comes first in --help."""

    data: str
    """Training data: a folder of images, a table (CSV, TSV, JSONL, Parquet), shards, or the name of a built-in set."""


@dataclass(frozen=True, kw_only=True)
class TrialSettings(Reading, Source):
    """Settings that `tracer fit` takes too: the same in all of its trials."""

    retain: tuple[str, ...] = ()
    """Data sets whose zero-shot accuracy should be retained; measured before and after training."""
    templates: str | None = None
    """Prompt templates for class names: openai (80, the default), released (86), simple (7), name, or a file."""

    model: str = "ViT-B-16"
    """An open_clip model (`tracer list models`), a run, a folder of open_clip or transformers, or hf-hub:NAME."""
    pretrained: str = "auto"
    """Pretrained weights: an open_clip tag, a file, or none for random initialisation. auto: OpenAI's."""

    epochs: float | None = None
    """Passes over the training data; by default 10, or 20 below 5 000 images."""
    steps: int | None = None
    """Optimiser steps, instead of epochs."""
    batch: int | None = None
    """Images per step; by default an eighth of the data, at most 128."""
    batchnorm: Literal["auto", "keep", "train"] = "auto"
    """Statistics of BatchNorm layers: keep the pretrained ones, or train. auto: keep, and train with random weights."""
    augment: Literal["none", "crop", "crop+flip"] = "crop+flip"
    """Random crops of 90 to 100 % and horizontal flips; use crop or none if left and right matter."""
    seed: int = 0
    """Seed of the order of the data, the choice of captions, and augmentation."""


@dataclass(frozen=True, kw_only=True)
class Settings(TrialSettings):
    """Settings that all methods share. None means: chosen by the size of the data (`tracer.runs.plan`)."""

    held_out: str | None = None
    """Held-out data; by default the split val of the data, else a share of the training split."""
    held_out_share: float | None = None
    """Share of the training split to hold out; by default 20 % up to 500 images, falling to 10 % at 5 000."""
    test_share: float | None = None
    """Share of the training split to set apart before that, for a test: neither trained on nor held out."""
    chunk: int | None = None
    """Images in memory at once, if a batch does not fit: the same gradients, at the cost of one more forward pass."""
    checkpointing: bool = False
    """Gradient checkpointing of every block: the same gradients, less memory, slower."""
    compile: bool = False
    """Compile both towers with torch.compile: takes minutes at the start, faster steps, same up to rounding."""
    lr: float = 1e-5
    """Peak learning rate of AdamW."""
    warmup: float | None = None
    """Warm-up: below 1 a share of training, else steps; by default 2 %, and up to 50 steps in short runs."""
    decay: float = 0.1
    """Weight decay."""
    decay_on: Literal["matrices", "all"] = "matrices"
    """Parameters with weight decay: matrices only, or all as in the released recipes."""
    clip: float | None = None
    """Maximum norm of the gradient."""
    clamp_scale: bool = True
    """Keep a learned temperature scale at 100 or below, or at the pretrained one where that is higher."""
    regularizer: str | None = None
    """Regularize towards the pretrained weights, with any method: l2sp:0.1, ftp, spd; the last two with --decay 0."""
    adapter: str | None = None
    """Train less: lora:rank=8,alpha=8,dropout=0,layers=all,factors=auto; or learned tokens, prompts:image=8,text=4."""
    decode: Literal["draft", "full"] = "draft"
    """How JPEGs far larger than needed are decoded in training: at 1/2 to 1/8 of their size, or in full."""
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    """auto: bf16 if the hardware supports it."""
    strict: bool = False
    """Stop if any image is unreadable, instead of listing and skipping it."""
    skip_unreadable: bool = False
    """Leave unreadable images out, however many they are; otherwise more than 1 % are refused."""


@dataclass(frozen=True, kw_only=True)
class Experiment(Settings):
    """Everything that determines the result of a run: a method with its options, and the settings."""

    method: str = "tracer"
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, hint in _hints().items():
            value = getattr(self, name)
            if isinstance(value, np.generic):  # JSON holds Python's own numbers only
                object.__setattr__(self, name, value := value.item())
            require(name, value, hint)
        for name, (bound, inclusive) in LOWER_BOUNDS.items():
            value = getattr(self, name)
            if value is not None and not (bound < value < math.inf or (inclusive and value == bound)):
                range_ = f"at least {bound}" if inclusive else f"more than {bound}"
                raise UserError(f"{name} {value}: expected a number, {range_}")

    @property
    def id(self) -> str:
        """A short hash: the same on any machine, and whether or not defaults are given explicitly."""
        old_names = {new: old for old, new in RENAMED.items()}
        settings = {
            old_names.get(name, name): value
            for name, value in asdict(self).items()
            if ADDED.get(name, ...) != value
        }
        defaults = {option.name: option.default for option in options(self.method)}
        changed = {name: value for name, value in self.options.items() if defaults.get(name, ...) != value}
        canonical = json.dumps({**settings, "options": changed}, sort_keys=True, default=str)
        return hashlib.blake2b(canonical.encode(), digest_size=5).hexdigest()

    @property
    def changed(self) -> dict[str, Any]:
        """The settings that are not defaults, by name, without the method and its options."""
        values = {each.name: (getattr(self, each.name), each.default) for each in fields(Settings)}
        return {name: value for name, (value, default) in values.items() if value != default}

    @property
    def sources(self) -> tuple[str, ...]:
        """All data that the experiment reads, as they are named."""
        others = (value for value in self.options.values() if isinstance(value, str))
        return (self.data, *((self.held_out,) if self.held_out else ()), *self.retain, *others)

    def locate(self) -> ModelSource:
        """Where the pretrained model comes from; a UserError if there is no such model."""
        return locate(self.model, pretrained_tag(self.model, self.pretrained))

    def pretrained_model(self, *, random: bool = False) -> Student:
        """The model before training, with its adapter's modules; `random` weights need no download."""
        tag = None if random else pretrained_tag(self.model, self.pretrained)
        student = load(self.model, tag, seed=self.seed)
        if self.adapter is not None:
            adapter(self.adapter).prepare(student)
        return student

    def to_json(self) -> dict[str, Any]:
        """The settings as JSON holds them; `from_json` reads them."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: object) -> Experiment:
        """The inverse of `to_json`; also of version 0.1. Raises on an unknown setting or a value of the wrong type."""
        if not isinstance(value, dict):
            raise UserError(f"expected the settings of an experiment, found {value!r:.60}")
        value = {RENAMED.get(name, name): setting for name, setting in value.items()}
        hints = _hints()
        for name, setting in value.items():
            if name not in hints:
                raise unknown("setting in experiment.json", name, hints)
            if not fits(setting, hints[name]):
                raise UserError(f"the setting {name} in experiment.json cannot be {setting!r:.60}")
        if "data" not in value:
            raise UserError("the experiment has no data")
        if "held_out_share" not in value and value.get("held_out") is None:
            value["held_out_share"] = FIRST_SHARE
        return cls(**(value | {"retain": tuple(value.get("retain", ()))}))


def default_batchnorm(pretrained: str) -> Literal["keep", "train"]:
    """What `batchnorm="auto"` stands for: random weights have no statistics that could be kept."""
    return "train" if pretrained == "none" else "keep"


@cache
def _hints() -> dict[str, Any]:
    """The annotated type of each setting."""
    return get_type_hints(Experiment)
