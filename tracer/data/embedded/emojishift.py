"""EmojiShift: data for pretraining, finetuning and testing on emoji. The data card gives the reasons.

A pair is one emoji in one style. Styles that reuse each other's drawings form a family, and are held out together.
Splits depend on a hash of the pair or of the emoji, and on nothing else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Literal, get_args

import numpy as np

from tracer.core.errors import UserError, unknown
from tracer.data.embedded.emoji import KIND_OF, KINDS, PROMPTS, Emoji, archive
from tracer.data.examples import Examples, Pixels
from tracer.models.prompts import render

Part = Literal["train", "val", "test"]
Regime = Literal["strong", "weak"]  # of captions: with or without the names of the kinds
REGIMES: tuple[Regime, ...] = get_args(Regime)

PREFIX = "emoji"
FOLDS = 5
HELD_OUT = 0.3  # share of the pairs held out of pretraining, in each style that pretraining uses
UNSEEN = ("twemoji", "openmoji-color", "openmoji-black")  # styles that pretraining does not use
FAMILIES = {
    "openmoji": ("openmoji-color", "openmoji-black"),
    "fluent": ("fluent-3d", "fluent-flat", "fluent-high-contrast"),
    "emojione": ("emojione-v2", "emojione-monotone"),
}
MONOCHROME = ("openmoji-black", "fluent-high-contrast", "emojione-monotone")
COLOURS = frozenset(
    ("red", "orange", "yellow", "green", "blue", "purple", "brown", "black", "white", "pink", "grey")
)
WRONG = frozenset({("fxemoji", "2328")})  # its keyboard is a drawing of a piano
COPY = 1.0  # mean difference, of 255, below which a black drawing counts as a copy of the coloured one

PER_CAPTION = 3  # keywords in one caption
MAX_KEYWORDS = 9  # of one emoji
ROOT = 5  # letters: words that share so many at the start count as forms of one word


def styles() -> tuple[str, ...]:
    """The names of all styles."""
    return tuple(style.name for style in archive().styles)


def emoji_names(regime: Regime = "strong", part: Part = "train") -> Examples:
    """The pretraining task: match pictures to the names of all emoji. "test" holds the pairs held out of it.

    The emoji of every test pair occurs in pretraining in another family, so that its name can be known.
    """
    if part not in ("train", "test"):
        raise unknown("split of emoji names", part, ("train", "test"))
    numbers_of = {
        style.name: [e for e in clean(style.name) if held_out(e, style.name) == (part == "test")]
        for style in archive().styles
        if style.name not in UNSEEN
    }
    if part == "test":
        pretrained = set(emoji_names(regime).labels.tolist())
        numbers_of = {style: [e for e in each if e in pretrained] for style, each in numbers_of.items()}
    names = tuple(each.name for each in archive().emoji)
    examples = _examples(f"names:{regime}", numbers_of, range(len(names)), names)
    if part == "test":
        return examples
    texts = [captions(each, regime) for each in archive().emoji]
    return replace(examples, captions=[texts[e] for e in examples.labels])


def emoji_kinds(style: str = "twemoji", fold: int = 0, part: Part = "train") -> Examples:
    """The finetuning task: classify emoji by kind. Three folds of emoji are for training, one for validation and
    one for testing.

    "test" holds no pair that pretraining uses, in any style.
    """
    archive().style(style)
    if not 0 <= fold < FOLDS:
        raise UserError(f"fold {fold} of the emoji: there are folds 0 to {FOLDS - 1}")
    if part not in get_args(Part):
        raise unknown("split of emoji kinds", part, get_args(Part))
    numbers = [e for e in clean(style) if e in folds() and _part(folds()[e], fold) == part]
    if part == "test":
        numbers = [e for e in numbers if held_out(e, style)]
    return _examples(f"{style}:{fold}", {style: numbers}, kinds(), KINDS)


def _examples(
    name: str, numbers_of: Mapping[str, Sequence[int]], labels: Sequence[int], classes: tuple[str, ...]
) -> Examples:
    """The pictures of these emoji in each style. `labels` are those of all emoji."""
    pairs = [(style, e) for style, numbers in numbers_of.items() for e in numbers]
    pictures = {style: archive().style(style).pictures() for style in numbers_of}
    return Examples(
        name=f"{PREFIX}:{name}",
        images=Pixels(np.stack([pictures[style][e] for style, e in pairs])),
        ids=[f"{style}/{archive().emoji[e].hex}" for style, e in pairs],
        labels=np.array([labels[e] for _, e in pairs], np.int64),
        captions=[()] * len(pairs),
        classes=classes,
        templates=PROMPTS,
    )


def emoji_parts(spec: str) -> tuple[tuple[Part, ...], Callable[[Part], Examples]]:
    """The splits of the data `emoji:names:strong`, `emoji:names:weak` or `emoji:STYLE:FOLD`, and what reads one.

    Kinds have no test split here: only the evaluation suite uses their test folds.
    """
    task, _, rest = spec.removeprefix(f"{PREFIX}:").partition(":")
    if task == "names":
        regime = next((each for each in REGIMES if each == rest), None)
        if regime is None:
            raise unknown("regime of emoji names", rest, REGIMES)
        return ("train", "test"), partial(emoji_names, regime)
    if rest.isdecimal():
        return ("train", "val"), partial(emoji_kinds, task, int(rest))
    raise UserError(f"{spec!r} names no emoji: write emoji:names:strong, emoji:names:weak or emoji:twemoji:0")


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


def family(style: str) -> str:
    """The family of a style: its own name, unless it shares drawings with other styles."""
    return next((name for name, members in FAMILIES.items() if style in members), style)


def held_out(number: int, style: str) -> bool:
    """Whether this pair is held out of pretraining; the same for all styles of a family."""
    each = archive().emoji[number]
    return style in UNSEEN or _hash_fraction(f"pair {each.hex} {family(style)}") < HELD_OUT


@cache
def folds() -> dict[int, int]:
    """The fold of every emoji that has a kind. Each kind is spread evenly over the folds, in the order of hashes."""
    fold_of = {}
    for label in range(len(KINDS)):
        members = [number for number, own in enumerate(kinds()) if own == label]
        order = sorted(members, key=lambda number: _hash_fraction(f"fold {archive().emoji[number].hex}"))
        fold_of |= {number: (place + label) % FOLDS for place, number in enumerate(order)}
    return fold_of


@cache
def kinds() -> tuple[int, ...]:
    """The label of each emoji's kind; −1 if it has none."""
    label_of = {subgroup: KINDS.index(kind) for subgroup, kind in KIND_OF.items()}
    return tuple(label_of.get(each.subgroup, -1) for each in archive().emoji)


@cache
def clean(style: str) -> tuple[int, ...]:
    """The emoji of a style, without wrong drawings, copies of another style, and colour names in monochrome styles."""
    return tuple(
        number
        for number in archive().style(style).emoji.tolist()
        if (style, archive().emoji[number].hex) not in WRONG
        and not (
            style in MONOCHROME and COLOURS & set(archive().emoji[number].name.replace("-", " ").split())
        )
        and number not in _copies(style)
    )


@cache
def _copies(style: str) -> frozenset[int]:
    """Emoji whose black OpenMoji drawing equals the coloured one, because that has no colour."""
    if style != "openmoji-black":
        return frozenset()
    coloured, black = (archive().style(each).pictures() for each in ("openmoji-color", style))
    return frozenset(e for e in black if np.abs(black[e].astype(float) - coloured[e]).mean() < COPY)


def _part(own: int, fold: int) -> Part:
    return "test" if own == fold else "val" if own == (fold + 1) % FOLDS else "train"


def _hash_fraction(text: str) -> float:
    """A number in [0, 1) that depends on the text alone."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) / 2**64
