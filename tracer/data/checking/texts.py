"""Captions and prompts that a model does not read to their end."""

from __future__ import annotations

from collections.abc import Sequence

from tracer.data.examples import Examples
from tracer.models.prompts import render
from tracer.models.token_count import TokenCount


def unread(
    tokens: TokenCount, examples: Examples, templates: Sequence[str], captions: bool = True
) -> list[str]:
    """What the model cuts or does not know of captions, and of class names in `templates`, in sentences."""
    texts = [text for own in examples.captions for text in own] if captions else []
    prompts = [render(template, name) for name in examples.classes for template in templates]
    return [
        *(tokens.findings("captions", texts) if texts else ()),
        *(tokens.findings("prompts of class names", list(dict.fromkeys(prompts))) if prompts else ()),
    ]
