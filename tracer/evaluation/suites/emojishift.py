"""EmojiShift: the same concepts in another artist's hand, at 32 pixels, out of the package itself.

ID is the style that was finetuned on, OOD the eleven others, both over emoji that finetuning has not seen and in
pairs that pretraining has not seen; retention is the task of pretraining, on held-out pairs.
"""

from __future__ import annotations

from functools import partial

from tracer.core.errors import UserError
from tracer.data.emoji import archive
from tracer.data.emoji_captions import PROMPTS
from tracer.data.emoji_kinds import KINDS
from tracer.data.emojishift import FOLDS, MONOCHROME, UNSEEN, emoji_kinds, emoji_names, styles
from tracer.evaluation.suites.projection import Everything
from tracer.evaluation.suites.shift import Average, Shift, Suite

NAMES = "names"  # the task of pretraining


def emojishift(style: str = "twemoji", fold: int = 0) -> Suite:
    """The kinds of a test fold in every style, and the names of pairs held out from pretraining."""
    archive().style(style)
    kinds = tuple(
        Shift(
            name=each,
            role="id" if each == style else "ood",
            load=partial(emoji_kinds, each, fold, "test"),
            classes=KINDS,
            project=Everything(len(KINDS)),
            templates=PROMPTS,
            size=len(emoji_kinds(each, fold, "test")),
        )
        for each in styles()
    )
    names = tuple(each.name for each in archive().emoji)
    retained = Shift(
        name=NAMES,
        role="retain",
        load=partial(emoji_names, "strong", "test"),  # pictures and names are the same in both regimes
        classes=names,
        project=Everything(len(names)),
        templates=PROMPTS,
    )
    return Suite("emojishift", (*kinds, retained), extra=tuple(averages(style)))


def named(asked: str, trained: str | None = None) -> Suite:
    """`emojishift[:STYLE[:FOLD]]`; a run on `emoji:STYLE:FOLD` gives its own, and is not tested on what it has seen."""
    style, _, fold = asked.partition(":")[2].partition(":")
    own = trained.split(":")[1:] if trained and trained.startswith("emoji:") else ["names", ""]
    if own[0] == "names":  # a pretraining, or no run at all: every fold is new to it
        own = ["twemoji", "0"]
    elif fold and fold != own[1]:
        raise UserError(
            f"{asked}: the run was trained on {trained}, so that only its fold {own[1]} is new to it"
        )
    if not (fold or own[1]).isdecimal():
        raise UserError(f"{asked}: expected emojishift:STYLE:FOLD with a fold of 0 to {FOLDS - 1}")
    return emojishift(style or own[0], int(fold or own[1]))


def averages(style: str) -> list[Average]:
    """Means over the styles that pretraining knows, those it never saw, and those without colour."""
    others = [each for each in styles() if each != style]
    groups = {
        "seen styles": [each for each in others if each not in UNSEEN],
        "unseen styles": [each for each in others if each in UNSEEN],
        "monochrome": [each for each in others if each in MONOCHROME],
    }
    return [Average(name, tuple(members)) for name, members in groups.items() if members]
