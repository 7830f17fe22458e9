"""Probe texts, which are not captions of the task: sampled at each step, or computed once.

A `Probe` is a description. `prepare` makes it a `Draw` for a model: a function that loader workers can hold and that
gives every process the same texts at the same step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import normalize

from tracer.core.errors import UserError
from tracer.data.loader import Captions, Draw
from tracer.models.prompts import render
from tracer.models.student import Student
from tracer.models.text import Tokeniser
from tracer.models.zero_shot import zero_shot


class Probe(Protocol):
    """Describes probe texts independently of the model; `drawn` tells whether they are embedded at each step."""

    drawn: ClassVar[bool]

    def prepare(self, student: Student, classes: Sequence[str]) -> Draw: ...


@dataclass(frozen=True)
class RandomTexts:
    """`count` texts of `length` tokens, sampled uniformly from the vocabulary."""

    count: int = 80
    length: int = 8
    drawn: ClassVar[bool] = True

    def prepare(self, student: Student, classes: Sequence[str]) -> Draw:
        del classes
        tokeniser = student.tokeniser.tokeniser
        start, end = getattr(tokeniser, "sot_token_id", None), getattr(tokeniser, "eot_token_id", None)
        if start is None or end is None:
            raise UserError(f"random texts need start and end tokens: {student.name}'s tokenizer has none")
        longest = tokeniser.context_length - 2
        if not 0 < self.length <= longest:
            raise UserError(f"random texts of {self.length} tokens: {student.name} takes 1 to {longest}")
        padded_length = self.length if student.tokeniser.end else longest
        return _Random(self.count, self.length, padded_length, start, end)


@dataclass(frozen=True)
class _Random:
    count: int
    length: int
    padded_length: int
    start: int
    end: int

    def __call__(self, rng: np.random.Generator, captions: Captions) -> Int[Tensor, "k m"]:
        del captions
        vocabulary = min(self.start, self.end)  # the special tokens have the highest ids
        tokens = np.zeros((self.count, self.padded_length + 2), np.int64)
        tokens[:, 0], tokens[:, self.length + 1] = self.start, self.end
        tokens[:, 1 : self.length + 1] = rng.integers(vocabulary, size=(self.count, self.length))
        return torch.from_numpy(tokens)


@dataclass(frozen=True)
class Contexts:
    """One embedding per template, the normalised mean over all classes: the meaning of "a sketch of" on its own.

    Computed once, with the text tower at the start of the stage.
    """

    templates: tuple[str, ...]
    drawn: ClassVar[bool] = False

    def prepare(self, student: Student, classes: Sequence[str]) -> Draw:
        rows = [zero_shot(student, classes, (template,)).mean(dim=0) for template in self.templates]
        return _Fixed(normalize(torch.stack(rows), dim=-1).cpu())


@dataclass(frozen=True)
class _Fixed:
    embedding: Float[Tensor, "k d"]

    def __call__(self, rng: np.random.Generator, captions: Captions) -> Float[Tensor, "k d"]:
        del rng, captions
        return self.embedding


@dataclass(frozen=True)
class Wrapped:
    """The caption of each image in a random setting: "a photo of a dog" becomes "a photo of a dog in the fog."."""

    settings: tuple[str, ...]
    drawn: ClassVar[bool] = True

    def prepare(self, student: Student, classes: Sequence[str]) -> Draw:
        del classes
        return _Wrapped(self.settings, student.tokeniser)


@dataclass(frozen=True)
class _Wrapped:
    settings: tuple[str, ...]
    tokeniser: Tokeniser

    def __call__(self, rng: np.random.Generator, captions: Captions) -> Int[Tensor, "k m"]:
        texts = [text.strip().rstrip(".") for text in captions()]
        choices = rng.integers(len(self.settings), size=len(texts))
        return self.tokeniser(
            [render(self.settings[i], text) for i, text in zip(choices, texts, strict=True)]
        )


# Settings that change an image but not its class.
SETTINGS = (
    "{} in the forest.",
    "{} on a beach.",
    "{} in the snow.",
    "{} in the desert.",
    "{} under water.",
    "{} in the sky.",
    "{} on a lawn.",
    "{} beside a river.",
    "{} on a mountain.",
    "{} in a city street.",
    "{} in a kitchen.",
    "{} in a living room.",
    "{} in an office.",
    "{} on a white table.",
    "{} against a brick wall.",
    "{} before a black background.",
    "{} at night.",
    "{} in the rain.",
    "{} in the fog.",
    "{} at sunset.",
    "{} behind a fence.",
    "{} held in a hand.",
    "{} among a crowd.",
    "{} with a striped pattern.",
)
