"""How many tokens texts have for a model, and how many of them it cuts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracer.models.open_clip_compat import open_clip

SAMPLED = 20_000  # texts that are tokenised; counts of more are extrapolated
SPARE = 8  # tokens by which a text may have more than bytes: start, end, and what cleaning adds


def sampled(texts: Sequence[str]) -> list[str]:
    """All of the texts, or as many of them at random as are tokenised in a second or two; always the same ones."""
    if len(texts) <= SAMPLED:
        return list(texts)
    return [texts[i] for i in np.sort(np.random.default_rng(0).choice(len(texts), SAMPLED, replace=False))]


@dataclass(frozen=True)
class TokenCount:
    """Counts the tokens of texts with the tokenizer of a model, as open_clip has it."""

    tokeniser: Any
    model: str

    @property
    def limit(self) -> int:
        """The most tokens of a text that the model reads: its context length."""
        return self.tokeniser.context_length

    def __call__(self, texts: Sequence[str]) -> list[int]:
        """The tokens of each text, with those that mark its start and end, if nothing is cut."""
        return [len(ids) for ids in self._ids(texts)]

    def findings(self, kind: str, texts: Sequence[str]) -> list[str]:
        """What the model does not read of texts of this kind, such as captions, in sentences; none if it reads all."""
        sample = sampled(texts)
        about = "about " if len(sample) < len(texts) else ""

        def share(some: Sequence[object]) -> str:
            count = round(len(some) * len(texts) / len(sample))
            return f"{about}{count} of {len(texts)} {kind} ({len(some) / len(sample):.1%})"

        candidates = [text for text in sample if len(text.encode(errors="replace")) + SPARE > self.limit]
        long = [count for count in self(candidates) if count > self.limit]
        odd = [text for text in sample if not (text.isascii() and any(map(str.isalnum, text)))]
        empty = [text for text, known in zip(odd, self._known(odd), strict=True) if not known]
        sentences = []
        if long:
            sentences.append(
                f"{share(long)} are longer than the {self.limit} tokens of {self.model} and will be cut"
            )
        if empty:
            example = f"such as {empty[0]!r:.60}"
            sentences.append(
                f"{share(empty)} hold nothing that the tokenizer of {self.model} knows, {example}"
            )
        return sentences

    def _known(self, texts: Sequence[str]) -> list[bool]:
        """Whether each text has a token beside those that mark start, end and what is unknown."""
        inner = getattr(self.tokeniser, "tokenizer", None)
        marks = {*(self._ids([""])[0] if inner is None else inner.all_special_ids)}
        return [bool({*row} - marks) for row in self._ids(texts)]

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        own = self.tokeniser
        inner = getattr(own, "tokenizer", None)
        if inner is None:
            return [[own.sot_token_id, *own.encode(text), own.eot_token_id] for text in texts]
        tokenizer = open_clip.tokenizer
        clean = getattr(own, "clean_fn", None) or tokenizer.get_clean_fn("canonicalize")
        clips = getattr(own, "tokenizer_mode", "") == "clips"  # which adds three of its own
        options = {"padding": False, "truncation": False, "verbose": False, "add_special_tokens": not clips}
        rows = inner([clean(text) for text in texts], **options).input_ids if texts else []
        return [[*row, *inner.all_special_ids[:3]] for row in rows] if clips else rows
