"""Captions of emoji for pretraining, in two regimes that differ in what they tell of the kinds."""

from __future__ import annotations

from functools import cache
from typing import Literal

from tracer.data.emoji import Emoji
from tracer.data.emoji_kinds import KIND_OF, KINDS
from tracer.models.prompts import render

Regime = Literal["strong", "weak"]

PROMPTS = ("{}", "a picture of {}", "an emoji of {}")
TOGETHER = 3  # keywords in one caption
MOST = 9  # keywords of one emoji
ROOT = 5  # words that begin with the same five letters are taken for forms of one word


def captions(emoji: Emoji, regime: Regime) -> tuple[str, ...]:
    """Every caption an emoji may get: its name in each prompt, and its name with a few keywords.

    "strong" keeps all keywords and says the kind in each prompt too, so that pretraining learns the words of the
    task; "weak" never says the kind, and drops every keyword that shares a word with any of them.
    """
    keywords = [each for each in emoji.keywords if regime == "strong" or not leaks(each)][:MOST]
    known = [KIND_OF[emoji.subgroup]] if regime == "strong" and emoji.subgroup in KIND_OF else []
    told = [keywords[start : start + TOGETHER] for start in range(0, len(keywords), TOGETHER)]
    return (
        *(render(prompt, said) for said in (emoji.name, *known) for prompt in PROMPTS),
        *(", ".join((emoji.name, *some)) for some in told),
    )


def leaks(keyword: str) -> bool:
    """Whether a word of a keyword begins like a word in the name of a kind; compounds (seafood) are not seen."""
    return not forbidden().isdisjoint(map(root, keyword.replace("-", " ").split()))


@cache
def forbidden() -> frozenset[str]:
    """The words in the names of the kinds."""
    return frozenset(root(word) for kind in KINDS for word in kind.split() if word != "or")


def root(word: str) -> str:
    """A word without its ending: enough to see that faces are a face and musical is music."""
    return word.lower().removesuffix("s")[:ROOT]
