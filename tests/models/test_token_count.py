"""Tokens are counted as the model's own tokenizer does: whatever it cuts is counted as cut, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import families
import pytest
import tiny_transformers as tiny

from tracer.models.open_clip_compat import open_clip
from tracer.models.token_count import TokenCount

TEXTS = [
    "a",
    "the red dog",
    "two birds on the hill",
    *(" ".join(["a dog"] * count) for count in range(1, 9)),
    "",
]
LONG = 64  # a context that holds all of them


def words(folder: Path) -> Any:
    return open_clip.tokenizer.HFTokenizer(str(families.tokenizer_folder(folder)), context_length=12)


def transformers(family: str, folder: Path) -> Any:
    place = folder / family
    place.mkdir()
    tiny._tokenizer(family, place).save_pretrained(place)
    return open_clip.tokenizer.HFTokenizer(str(place), context_length=tiny.CONTEXT)


TOKENISERS = {
    "clip's": lambda folder: open_clip.get_tokenizer("ViT-B-32"),
    "short": lambda folder: open_clip.tokenizer.SimpleTokenizer(context_length=6),
    "cleaned": lambda folder: open_clip.tokenizer.SimpleTokenizer(context_length=6, clean="canonicalize"),
    "words": words,
    **{name: lambda folder, name=name: transformers(name, folder) for name in tiny.FAMILIES},
}


def needed(tokeniser: Any, text: str) -> int:
    """The shortest context whose tokens are the first of those in a long one, where only padding follows."""
    (whole,) = tokeniser([text], context_length=LONG).tolist()
    return next(
        length
        for length in range(3, LONG)
        if tokeniser([text], context_length=length)[0].tolist() == whole[:length]
        and set(whole[length:]) == {whole[-1]}
    )


@pytest.mark.parametrize("name", TOKENISERS)
def test_what_is_counted_as_cut_is_cut(name: str, tmp_path: Path) -> None:
    tokeniser = TOKENISERS[name](tmp_path)
    tokens = TokenCount(tokeniser, name)
    counts = tokens(TEXTS)
    assert [max(3, count) for count in counts] == [needed(tokeniser, text) for text in TEXTS]
    cut = sum(count > tokeniser.context_length for count in counts)
    said = [line for line in tokens.findings("captions", TEXTS) if "will be cut" in line]
    assert bool(said) == bool(cut)
    if cut:
        assert said[0].startswith(
            f"{cut} of {len(TEXTS)} captions ({cut / len(TEXTS):.1%}) are longer than the "
        )
        assert f"{tokeniser.context_length} tokens of {name}" in said[0]


@pytest.mark.parametrize("name", ["clip's", "words", "siglip"])
def test_texts_without_a_known_word_are_told(name: str, tmp_path: Path) -> None:
    tokens = TokenCount(TOKENISERS[name](tmp_path), name)
    assert not any("knows" in line for line in tokens.findings("captions", ["a dog", "the red dog"]))
    (said,) = [line for line in tokens.findings("captions", ["a dog", " "]) if "knows" in line]
    assert said.startswith("1 of 2 captions (50.0%) hold nothing that the tokenizer of ")


def test_of_very_many_texts_some_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracer.models.token_count.SAMPLED", 100)
    tokens = TokenCount(open_clip.tokenizer.SimpleTokenizer(context_length=8), "m")
    for period in (2, 4, 5, 10):  # such as the captions of an image, one after the other
        texts = ["word " * 20, *["a dog"] * (period - 1)] * (1000 // period)
        (said,) = tokens.findings("captions", texts)
        about, count, *_ = said.split()
        assert about == "about"
        assert int(count) == pytest.approx(1000 / period, abs=150)
