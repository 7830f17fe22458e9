"""Probe texts, which are not captions of the task: sampled at each step, or computed once.

A `Probe` is a description. `prepare` makes it a `Draw` for a model: a function that loader workers can hold and that
gives every process the same texts at the same step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import normalize

from tracer.core.errors import UserError
from tracer.data.loader import Captions, Draw
from tracer.models.prompts import render
from tracer.models.student import Student
from tracer.models.text import Tokeniser, vocabulary
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
        frame = _Frame.of(student)
        longest = student.tokeniser.tokeniser.context_length - len(frame.before) - len(frame.after)
        if not 0 < self.length <= longest:
            raise UserError(f"random texts of {self.length} tokens: {student.name} takes 1 to {longest}")
        padding = 0 if student.tokeniser.end else longest - self.length
        return partial(_random_texts, (self.count, self.length), padding, frame)


@dataclass(frozen=True)
class _Frame:
    """The tokens that a tokenizer puts around a text, and the ids of ordinary tokens."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    padding: int
    ordinary: Int[np.ndarray, " v"]

    @classmethod
    def of(cls, student: Student) -> _Frame:
        tokeniser = student.tokeniser.tokeniser
        start, end = getattr(tokeniser, "sot_token_id", None), getattr(tokeniser, "eot_token_id", None)
        inner = getattr(tokeniser, "tokenizer", None)
        if inner is None and start is not None and end is not None:
            # open_clip's own: the special tokens have the highest ids
            return cls((start,), (end,), 0, np.arange(min(start, end)))
        if getattr(inner, "all_special_ids", None) is None or getattr(tokeniser, "tokenizer_mode", ""):
            raise UserError(f"random texts need to know the special tokens of {student.name}'s tokenizer")
        return cls._of_hugging_face(student, tokeniser, inner)

    @classmethod
    def _of_hugging_face(cls, student: Student, tokeniser: Any, inner: Any) -> _Frame:
        """Read off an example, because each tokenizer has its own order of special tokens."""
        special = {*inner.all_special_ids, *inner.added_tokens_decoder}
        row = tokeniser(["a"])[0].tolist()
        body = [index for index, token in enumerate(row) if token not in special]
        if not body:
            raise UserError(f"random texts: the tokenizer of {student.name} gives no token for 'a'")
        padding = row[-1]
        after = [*takewhile(lambda token: token != padding, row[body[-1] + 1 :])]
        size = min(len(inner), vocabulary(student.clip) or len(inner))
        ordinary = np.setdiff1d(np.arange(size), np.array([*special, padding]))
        return cls(tuple(row[: body[0]]), tuple(after), padding, ordinary)


def _random_texts(
    size: tuple[int, int], padding: int, frame: _Frame, rng: np.random.Generator, captions: Captions
) -> Int[Tensor, "k m"]:
    del captions
    texts = frame.ordinary[rng.integers(len(frame.ordinary), size=size)]
    tail = [*frame.after, *[frame.padding] * padding]
    return torch.tensor([[*frame.before, *text, *tail] for text in texts.tolist()])


@dataclass(frozen=True)
class Contexts:
    """One embedding per template, the normalised mean over all classes: the meaning of "a sketch of" on its own.

    Computed once, with the text tower at the start of the stage.
    """

    templates: tuple[str, ...]
    drawn: ClassVar[bool] = False

    def prepare(self, student: Student, classes: Sequence[str]) -> Draw:
        rows = [zero_shot(student, classes, (template,)).mean(dim=0) for template in self.templates]
        return partial(_fixed, normalize(torch.stack(rows), dim=-1).cpu())


def _fixed(
    embedding: Float[Tensor, "k d"], rng: np.random.Generator, captions: Captions
) -> Float[Tensor, "k d"]:
    del rng, captions
    return embedding


@dataclass(frozen=True)
class Wrapped:
    """The caption of each image in a random setting: "a photo of a dog" becomes "a photo of a dog in the fog."."""

    settings: tuple[str, ...]
    drawn: ClassVar[bool] = True

    def prepare(self, student: Student, classes: Sequence[str]) -> Draw:
        del classes
        return partial(_wrapped_captions, self.settings, student.tokeniser)


def _wrapped_captions(
    settings: tuple[str, ...], tokeniser: Tokeniser, rng: np.random.Generator, captions: Captions
) -> Int[Tensor, "k m"]:
    texts = [text.strip().rstrip(".") for text in captions()]
    choices = rng.integers(len(settings), size=len(texts))
    return tokeniser([render(settings[i], text) for i, text in zip(choices, texts, strict=True)])


# Settings that change an image but not its class.
_PLACES = (
    "in the forest; on a beach; in the snow; in the desert; under water; in the sky; on a lawn; "
    "beside a river; on a mountain; in a city street; in a kitchen; in a living room; in an office; "
    "on a white table; against a brick wall; before a black background; at night; in the rain; "
    "in the fog; at sunset; behind a fence; held in a hand; among a crowd; with a striped pattern"
)
SETTINGS = tuple(f"{{}} {place}." for place in _PLACES.split("; "))
