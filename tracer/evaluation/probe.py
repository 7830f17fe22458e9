"""A built-in retention probe: naming the embedded emoji, which needs no data of the user's and no network."""

from __future__ import annotations

import numpy as np

from tracer.core.metrics.intervals import wilson_interval
from tracer.data.embedded.emoji import archive
from tracer.data.embedded.emojishift import clean, styles
from tracer.data.examples import Examples, Pixels

NAME = "naming emoji"
PROMPTS = ("an emoji of {}.",)
LEAST, MOST = 60, 240
ABOVE_CHANCE = 5  # a model whose accuracy is not clearly this many times chance cannot name emoji at all


def emoji_probe(images_seen: int, most: int = MOST) -> Examples:
    """One picture each of evenly spaced emoji, the styles in turn; more of them after a longer training."""
    count = min(most, max(LEAST, images_seen // 100))
    emoji = archive().emoji
    drawn = {style: dict(archive().style(style).pictures()) for style in styles()}
    pictures, ids = [], []
    numbers = (np.arange(count) * len(emoji) // count).tolist()
    for turn, number in enumerate(numbers):
        order = [*styles()[turn % len(drawn) :], *styles()[: turn % len(drawn)]]
        style = next(style for style in order if number in clean(style))
        pictures.append(drawn[style][number])
        ids.append(f"{style}/{emoji[number].hex}")
    return Examples(
        name=NAME,
        images=Pixels(np.stack(pictures)),
        ids=ids,
        labels=np.arange(count, dtype=np.int64),
        captions=[()] * count,
        classes=tuple(emoji[number].name for number in numbers),
        templates=PROMPTS,
    )


def can_name(hits: list[bool]) -> bool:
    """Whether these answers to a probe of as many names are clearly better than chance."""
    return wilson_interval(sum(hits) / len(hits), len(hits)).low > ABOVE_CHANCE / len(hits)
