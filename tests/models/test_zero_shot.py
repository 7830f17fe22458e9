"""A classifier out of words: normalise each prompt, average, normalise again."""

from __future__ import annotations

import pytest
import torch
from closeness import length, same
from torch import Tensor
from torch.nn.functional import normalize

from tracer.models import zero_shot as classifier
from tracer.models.adapters import adapter
from tracer.models.student import Student, load
from tracer.models.text import Tokeniser
from tracer.models.zero_shot import shares_words, zero_shot

CLASSES = ["cat", "a very long class name of many, many words", "dog", "cat"]
TEMPLATES = ["a photo of a {}.", "{}", "the {} in the rain, seen from far away"]


@torch.no_grad()
def by_hand(student: Student) -> Tensor:
    """One prompt at a time, padded to the full context, by open_clip itself."""
    rows = []
    for name in CLASSES:
        tokens = student.tokeniser.tokeniser([template.replace("{}", name) for template in TEMPLATES])
        prompts = torch.cat([student.clip.encode_text(prompt[None], normalize=True) for prompt in tokens])
        rows.append(normalize(prompts.mean(dim=0), dim=0))
    return torch.stack(rows)


@pytest.mark.parametrize("share_words", [False, True])
@pytest.mark.parametrize("chunk", [1, 2, 256])
def test_it_is_the_mean_of_normalised_prompts(
    shared_student: Student, monkeypatch: pytest.MonkeyPatch, chunk: int, share_words: bool
) -> None:
    monkeypatch.setattr(classifier, "CHUNK", chunk)
    rows = zero_shot(shared_student, CLASSES, TEMPLATES, share_words=share_words)
    same(rows, by_hand(shared_student), length(shared_student))
    same(rows.norm(dim=1), torch.ones(4), sums=128)
    assert torch.equal(rows[0], rows[3])


def test_texts_come_once_and_in_one_order(shared_student: Student, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of a set changes from process to process, and with it the last bits: a resumed run would differ."""
    seen: list[str] = []
    whole = shared_student.tokeniser

    def watched(texts: list[str]) -> Tensor:
        seen.extend(texts)
        return whole.tokeniser(texts)

    monkeypatch.setattr(shared_student, "tokeniser", Tokeniser(watched, whole.end))
    zero_shot(shared_student, ["bb", "ab", "bb"], ["{}", "a {}"])
    assert seen == ["bb", "a bb", "ab", "a ab"]


def test_no_text_is_padded(shared_student: Student, monkeypatch: pytest.MonkeyPatch) -> None:
    tower, seen = shared_student.embed_text, []

    def watched(tokens: Tensor) -> Tensor:
        seen.append(tokens)
        return tower(tokens)

    monkeypatch.setattr(shared_student, "embed_text", watched)
    zero_shot(shared_student, CLASSES, TEMPLATES)
    assert len({tokens.shape[1] for tokens in seen}) == len(seen) > 1
    assert all((tokens != 0).all() for tokens in seen)  # open_clip pads with zeros


@pytest.mark.usefixtures("either_form")
def test_the_first_words_of_a_template_are_computed_once() -> None:
    student, computed = load("tiny-28").eval(), []
    mlp = student.clip.transformer.resblocks[0].mlp
    hook = mlp.register_forward_hook(lambda module, inputs, output: computed.append(output[..., 0].numel()))
    with hook:
        shared = zero_shot(student, ["cat", "dog", "red fox"], ["a photo of a {}."], share_words=True)
        whole = zero_shot(student, ["cat", "dog", "red fox"], ["a photo of a {}."])
    torch.testing.assert_close(shared, whole, atol=1e-5, rtol=0)
    # start, a, photo, of, a; then the name, the full stop and the end
    assert sum(computed[:-2]) == 5 + 3 + 3 + 4
    assert sum(computed[-2:]) == 8 + 8 + 9


def test_a_tower_of_another_kind_computes_whole_texts(student: Student) -> None:
    whole = zero_shot(student, CLASSES, TEMPLATES)
    prompts = adapter("prompts:image=0,text=2")
    prompts.prepare(student)
    assert not shares_words(student.clip)
    same(zero_shot(student, CLASSES, TEMPLATES, share_words=True), whole, length(student))


def test_it_leaves_the_student_as_it_was(student: Student) -> None:
    for mode in (True, False):
        student.train(mode)
        rows = zero_shot(student, CLASSES, TEMPLATES)
        assert student.training is mode
        assert not rows.requires_grad


def test_even_when_it_fails(student: Student, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(tokens: Tensor) -> Tensor:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(student, "embed_text", broken)
    with pytest.raises(RuntimeError, match="memory"):
        zero_shot(student.train(), CLASSES, TEMPLATES)
    assert student.training
