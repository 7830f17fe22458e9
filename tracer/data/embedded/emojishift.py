"""EmojiShift: data for pretraining, finetuning and testing on emoji. The data card gives the reasons.

A pair is one emoji in one style. Styles that reuse each other's drawings form a family, and are held out together.
Splits depend on a hash of the pair or of the emoji, and on nothing else.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import Literal, get_args

import numpy as np

from tracer.core.errors import UserError, unknown
from tracer.data.embedded.emoji import Emoji, archive
from tracer.data.embedded.emoji_captions import PROMPTS, Regime, captions
from tracer.data.embedded.emoji_kinds import KIND_OF, KINDS
from tracer.data.examples import Examples, Pixels
from tracer.data.options import Options

Part = Literal["train", "val", "test"]

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
    texts = [captions(each, regime) for each in archive().emoji]
    numbers = np.array([e for each in numbers_of.values() for e in each], np.int64)
    return Examples(
        name=f"{PREFIX}:names:{regime}",
        images=Pixels(np.concatenate([_pictures(style, numbers) for style, numbers in numbers_of.items()])),
        ids=[f"{style}/{archive().emoji[e].hex}" for style, each in numbers_of.items() for e in each],
        labels=numbers,
        captions=[texts[e] if part == "train" else () for e in numbers],
        classes=tuple(each.name for each in archive().emoji),
        templates=PROMPTS,
    )


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
    numbers = [e for e in clean(style) if kind(e) is not None and _part(folds()[e], fold) == part]
    if part == "test":
        numbers = [e for e in numbers if held_out(e, style)]
    return Examples(
        name=f"{PREFIX}:{style}:{fold}",
        images=Pixels(_pictures(style, numbers)),
        ids=[f"{style}/{archive().emoji[e].hex}" for e in numbers],
        labels=np.array([kind(e) for e in numbers], np.int64),
        captions=[()] * len(numbers),
        classes=KINDS,
        templates=PROMPTS,
    )


def emoji(spec: str, part: Part = "train") -> Examples:
    """The examples that `spec` names: `emoji:names:strong`, `emoji:names:weak` or `emoji:STYLE:FOLD`."""
    task, _, rest = spec.removeprefix(f"{PREFIX}:").partition(":")
    if task == "names":
        if rest not in get_args(Regime):
            raise unknown("regime of emoji names", rest, get_args(Regime))
        return emoji_names(rest, part)  # pyright: ignore[reportArgumentType]
    if not rest.isdecimal():
        raise UserError(
            f"{spec!r} names no emoji: write emoji:names:strong, emoji:names:weak or emoji:twemoji:0"
        )
    return emoji_kinds(task, int(rest), part)


def read_emoji(spec: str, options: Options) -> Examples:
    """Read `spec` as a data source. Kinds have no test split here: only the evaluation suite uses their test folds."""
    options.refuse(f"the emoji of {spec}", "image", "caption", "label", "separator", "classes")
    splits: tuple[Part, ...] = ("train", "test") if spec.startswith(f"{PREFIX}:names") else ("train", "val")
    part: Part = next(split for split in splits if split == options.choose(splits, spec))
    examples = emoji(spec, part)
    return replace(examples, splits=splits, detected=(f"split: {part} of {', '.join(splits)}",))


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
    members: dict[int, list[int]] = defaultdict(list)
    for number in range(len(archive().emoji)):
        if (label := kind(number)) is not None:
            members[label].append(number)
    fold_of = {}
    for label, numbers in members.items():
        order = sorted(numbers, key=lambda number: _hash_fraction(f"fold {archive().emoji[number].hex}"))
        fold_of |= {number: (place + label) % FOLDS for place, number in enumerate(order)}
    return fold_of


def kind(number: int) -> int | None:
    """The label of an emoji's kind, if it has one."""
    name = KIND_OF.get(archive().emoji[number].subgroup)
    return None if name is None else KINDS.index(name)


@cache
def clean(style: str) -> tuple[int, ...]:
    """The emoji of a style, without wrong drawings, copies of another style, and colour names in monochrome styles."""
    return tuple(
        number
        for number in archive().style(style).emoji.tolist()
        if (style, archive().emoji[number].hex) not in WRONG
        and not (style in MONOCHROME and _names_a_colour(archive().emoji[number]))
        and number not in _copies(style)
    )


def _names_a_colour(each: Emoji) -> bool:
    return not COLOURS.isdisjoint(each.name.replace("-", " ").split())


@cache
def _copies(style: str) -> frozenset[int]:
    """Emoji whose black OpenMoji drawing equals the coloured one, because that has no colour."""
    if style != "openmoji-black":
        return frozenset()
    coloured = dict(archive().style("openmoji-color").pictures())
    pairs = (
        (e, np.abs(picture.astype(float) - coloured[e]).mean())
        for e, picture in archive().style(style).pictures()
    )
    return frozenset(e for e, difference in pairs if difference < COPY)


def _pictures(style: str, numbers: Iterable[int]) -> np.ndarray:
    drawings = archive().style(style)
    index = {e: i for i, e in enumerate(drawings.emoji.tolist())}
    return drawings.images[np.array([index[e] for e in numbers], np.int64)]


def _part(own: int, fold: int) -> Part:
    return "test" if own == fold else "val" if own == (fold + 1) % FOLDS else "train"


def _hash_fraction(text: str) -> float:
    """A number in [0, 1) that depends on the text alone."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) / 2**64
