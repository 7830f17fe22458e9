"""Captions of emoji for pretraining, in two regimes: with and without the names of the kinds."""

from __future__ import annotations

from functools import cache
from typing import Literal

from tracer.data.embedded.emoji import KIND_OF, KINDS, Emoji
from tracer.models.prompts import render

Regime = Literal["strong", "weak"]

PROMPTS = ("{}", "a picture of {}", "an emoji of {}")
PER_CAPTION = 3  # keywords in one caption
MAX_KEYWORDS = 9  # of one emoji
ROOT = 5  # letters: words that share so many at the start count as forms of one word


def captions(emoji: Emoji, regime: Regime) -> tuple[str, ...]:
    """All captions of an emoji: its name in each prompt, and its name with a few keywords.

    "strong" keeps all keywords and adds the kind in each prompt, so that pretraining learns the vocabulary of the
    task; "weak" never names the kind, and drops every keyword that shares a word with the name of any kind.
    """
    keywords = [each for each in emoji.keywords if regime == "strong" or not leaks(each)][:MAX_KEYWORDS]
    kinds = [KIND_OF[emoji.subgroup]] if regime == "strong" and emoji.subgroup in KIND_OF else []
    groups = [keywords[start : start + PER_CAPTION] for start in range(0, len(keywords), PER_CAPTION)]
    return (
        *(render(prompt, name) for name in (emoji.name, *kinds) for prompt in PROMPTS),
        *(", ".join((emoji.name, *group)) for group in groups),
    )


def leaks(keyword: str) -> bool:
    """Whether a keyword shares the root of a word with the name of a kind; compounds (seafood) are not detected."""
    return not forbidden().isdisjoint(map(root, keyword.replace("-", " ").split()))


@cache
def forbidden() -> frozenset[str]:
    """The roots of the words in the names of the kinds."""
    return frozenset(root(word) for kind in KINDS for word in kind.split() if word != "or")


def root(word: str) -> str:
    """A crude stem: maps faces to face and musical to music."""
    return word.lower().removesuffix("s")[:ROOT]
