"""Further texts for a method to look at: drawn anew each step, or made once.

A probe is a policy; prepared for a model it becomes a draw, which workers can hold and which gives every
process the same texts at the same step.
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
    """What to draw, before the model is known; `drawn` says whether texts are embedded anew at each step."""

    drawn: ClassVar[bool]

    def prepare(self, student: Student, classes: Sequence[str]) -> Draw: ...


@dataclass(frozen=True)
class RandomTexts:
    """`count` strings of `length` tokens, each token uniform over the vocabulary: words without meaning."""

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
        padded = self.length if student.tokeniser.end else longest
        return _Random(self.count, self.length, padded, start, end)


@dataclass(frozen=True)
class _Random:
    count: int
    length: int
    padded: int
    start: int
    end: int

    def __call__(self, rng: np.random.Generator, captions: Captions) -> Int[Tensor, "k m"]:
        del captions
        pieces = min(
            self.start, self.end
        )  # these two end the vocabulary: all tokens below are pieces of text
        tokens = np.zeros((self.count, self.padded + 2), np.int64)
        tokens[:, 0], tokens[:, self.length + 1] = self.start, self.end
        tokens[:, 1 : self.length + 1] = rng.integers(pieces, size=(self.count, self.length))
        return torch.from_numpy(tokens)


@dataclass(frozen=True)
class Contexts:
    """One embedding a template, the normalised mean over all classes: what "a sketch of" means by itself.

    Made once, with the text tower as it is when the stage begins.
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
    """The caption of each image in a setting drawn at random: "a photo of a dog" "in the fog"."""

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
        chosen = rng.integers(len(self.settings), size=len(texts))
        return self.tokeniser([render(self.settings[i], text) for i, text in zip(chosen, texts, strict=True)])


# Settings that change a picture and not its target.
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
