"""Text at its own length is text: the cut changes no embedding where it is made, and is made only where it may."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from closeness import length, same
from posting import posted
from torch import Tensor
from torch.nn.functional import normalize

from tracer.models.open_clip_compat import open_clip
from tracer.models.student import Student, load
from tracer.models.text import EndOfText, Tokeniser, encode_text, text_tower

CAPTIONS = [
    "7",
    "a photo of a dog.",
    "a bad photo of the great white shark, taken from a small boat in the rain",
    "the digit 3",
    " ".join(
        ["long"] * 200
    ),  # more than any context holds: cut by the tokeniser, end of text in the last place
]
SHORT = CAPTIONS[:4]

VISION = {"image_size": 32, "layers": 1, "width": 32, "head_width": 16, "patch_size": 16}
TEXT = {"context_length": 24, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2}


def tower(custom: bool = False, **text: Any) -> Any:
    """A small CLIP whose text tower is a part of its own (CustomTextCLIP) or lies in the model itself."""
    kind: Any = open_clip.CustomTextCLIP if custom else open_clip.CLIP
    torch.manual_seed(5)
    clip = kind(embed_dim=16, vision_cfg=dict(VISION), text_cfg=TEXT | text)
    for parameter in clip.parameters():  # some start at zero, and a zero bias hides a forgotten one
        parameter.data += 0.02 * torch.randn_like(parameter)
    return clip.eval()


def padded(captions: list[str], length: int, eos: int | None = None) -> Tensor:
    tokens = open_clip.SimpleTokenizer(context_length=length)(captions)
    if eos is not None:
        tokens[tokens == 49407] = eos  # an end of text that is not the highest id
    return tokens


@torch.no_grad()
def same_when_cut(clip: Any, tokens: Tensor) -> None:
    """Embeddings of cut tokens are what open_clip makes of padded ones."""
    end = EndOfText.of(clip)
    assert end is not None
    cut = Tokeniser(lambda texts: tokens, end)([])
    assert cut.shape[1] == int(end(tokens).max()) + 1 <= tokens.shape[1]
    whole = normalize(clip.encode_text(tokens), dim=-1)
    same(normalize(encode_text(clip, cut), dim=-1), whole, length(clip))


def test_real_length_equals_padded_on_vit_b_16() -> None:
    """Its text tower; the image tower has no part in this."""
    config = open_clip.get_model_config("ViT-B-16")
    base = open_clip.CLIP(config["embed_dim"], dict(VISION), config["text_cfg"]).eval()
    same_when_cut(base, padded(CAPTIONS, 77))
    same_when_cut(base, padded(SHORT, 77))
    same_when_cut(base, padded(["cat"], 77))


@pytest.mark.parametrize("captions", [CAPTIONS, SHORT, ["cat"]], ids=["cut", "mixed", "one"])
@pytest.mark.parametrize(
    ("custom", "text"),
    [
        (False, {}),
        (True, {}),
        (True, {"proj_bias": True}),
        (True, {"proj_type": "none", "width": 16}),
    ],
    ids=["clip", "custom text", "projection with bias", "no projection"],
)
def test_real_length_equals_padded_on_every_causal_tower(
    custom: bool, text: dict[str, Any], captions: list[str]
) -> None:
    same_when_cut(tower(custom, **text), padded(captions, 24))


@pytest.mark.parametrize("custom", [False, True])
def test_an_end_that_is_a_given_token(custom: bool) -> None:
    """pool_type "eos": the first token with that id, wherever higher ids stand."""
    clip = tower(custom, pool_type="eos", eos_id=2)
    tokens = padded(SHORT, 24, eos=2)
    assert EndOfText.of(clip) == EndOfText(2)
    assert (tokens.argmax(dim=1) != EndOfText(2)(tokens)).all()  # the highest id is elsewhere
    same_when_cut(clip, tokens)


@torch.no_grad()
def test_real_length_equals_padded_on_the_tiny_tower(shared_student: Student) -> None:
    clip = shared_student.clip
    same_when_cut(clip, padded(CAPTIONS, 32))
    tokens = shared_student.tokeniser(SHORT)
    assert tokens.shape[1] < 32
    whole = clip.encode_text(padded(SHORT, 32), normalize=True)
    same(shared_student.embed_text(tokens), whole, length(clip))


@pytest.mark.parametrize(
    "text",
    [
        {"no_causal_mask": True},
        {"no_causal_mask": True, "pool_type": "last", "proj_bias": True},  # SigLIP
        {"pool_type": "last"},
        {"pool_type": "first"},
        {"embed_cls": True},  # CoCa
    ],
    ids=str,
)
@torch.no_grad()
def test_other_towers_keep_their_padding(text: dict[str, Any]) -> None:
    clip = tower(custom=True, **text)
    assert EndOfText.of(clip) is None
    tokens = padded(SHORT, 24)
    assert torch.equal(Tokeniser(lambda texts: tokens, EndOfText.of(clip))([]), tokens)
    assert torch.equal(encode_text(clip, tokens), clip.encode_text(tokens))


@torch.no_grad()
def test_padding_counts_where_nothing_is_masked() -> None:
    clip = tower(custom=True, no_causal_mask=True)
    tokens = padded(SHORT, 24)
    cut = tokens[:, : int(tokens.argmax(dim=1).max()) + 1]
    gap = normalize(clip.encode_text(cut), dim=-1) - normalize(clip.encode_text(tokens), dim=-1)
    assert gap.abs().max() > 1e-3


def test_zoo_names_of_non_causal_towers() -> None:
    """Asked of the tower itself, not guessed from a name: a bidirectional config of open_clip's zoo."""
    config = open_clip.get_model_config("ViT-B-16-SigLIP")
    assert config is not None
    text = {key: config["text_cfg"][key] for key in ("no_causal_mask", "pool_type", "proj_bias")}
    assert EndOfText.of(tower(custom=True, **text)) is None


@torch.no_grad()
def test_half_precision_towers_compute_as_open_clip_does() -> None:
    clip = tower().to(torch.bfloat16)
    tokens = padded(SHORT, 24)
    assert torch.equal(encode_text(clip, tokens), clip.encode_text(tokens))


@torch.no_grad()
def test_full_length_is_bit_for_bit_open_clip(shared_student: Student) -> None:
    tokens = padded(CAPTIONS, 32)
    assert torch.equal(encode_text(shared_student.clip, tokens), shared_student.clip.encode_text(tokens))


def test_the_text_tower_is_found_in_both_layouts() -> None:
    clip, custom = tower(), tower(custom=True)
    assert text_tower(clip) is clip
    assert text_tower(custom) is custom.text


def test_a_student_s_tokeniser_goes_to_workers() -> None:
    tokeniser = load("tiny-28").tokeniser
    again = posted(tokeniser)
    assert torch.equal(again(SHORT), tokeniser(SHORT))
