"""EmojiShift: emoji in the styles of twelve artists, at 32 pixels; the data ship with the package.

ID is the style of finetuning and OOD the eleven others, both with emoji held out from finetuning and pairs held out
from pretraining; retention is the pretraining task on held-out pairs.
"""

from __future__ import annotations

from functools import partial

from tracer.core.errors import UserError
from tracer.data.embedded.emoji import KINDS, PROMPTS, archive
from tracer.data.embedded.emojishift import FOLDS, MONOCHROME, UNSEEN, emoji_kinds, emoji_names, styles
from tracer.data.sources import embedded_name
from tracer.evaluation.suites.shift import Average, Shift, Suite

NAMES = "names"  # the pretraining task


def emojishift(style: str = "twemoji", fold: int = 0) -> Suite:
    """Kinds of emoji of a test fold in every style, and names of pairs held out from pretraining."""
    archive().style(style)  # an error if the style is unknown
    kinds = tuple(
        Shift(
            name=each,
            role="id" if each == style else "ood",
            load=partial(emoji_kinds, each, fold, "test"),
            classes=KINDS,
            templates=PROMPTS,
            size=len(emoji_kinds(each, fold, "test")),
        )
        for each in styles()
    )
    retained = Shift(
        name=NAMES,
        role="retain",
        load=partial(emoji_names, "strong", "test"),  # the test pairs are the same in both regimes
        classes=tuple(each.name for each in archive().emoji),
        templates=PROMPTS,
    )
    return Suite("emojishift", (*kinds, retained), extra=tuple(averages(style)))


def suite_from_spec(spec: str, trained: str | None = None) -> Suite:
    """The suite `emojishift[:STYLE[:FOLD]]`; by default the style and fold of `trained`, the data of the run.

    An error if the run has trained on the emoji of the fold.
    """
    style, _, fold = spec.partition(":")[2].partition(":")
    emoji = embedded_name(trained or "") or ""
    own = emoji.split(":")[1:] if emoji.startswith("emoji:") else ["names", ""]
    if own[0] == "names":  # a pretrained model: all folds are unseen
        own = ["twemoji", "0"]
    elif fold and fold != own[1]:
        raise UserError(
            f"{spec}: the run was trained on {trained}, so that only its fold {own[1]} is new to it"
        )
    if not (fold or own[1]).isdecimal():
        raise UserError(f"{spec}: expected emojishift:STYLE:FOLD with a fold of 0 to {FOLDS - 1}")
    return emojishift(style or own[0], int(fold or own[1]))


def averages(style: str) -> list[Average]:
    """Means over the styles seen in pretraining, the unseen ones, and the monochrome ones."""
    others = [each for each in styles() if each != style]
    groups = {
        "seen styles": [each for each in others if each not in UNSEEN],
        "unseen styles": [each for each in others if each in UNSEEN],
        "monochrome": [each for each in others if each in MONOCHROME],
    }
    return [Average(name, tuple(members)) for name, members in groups.items() if members]
