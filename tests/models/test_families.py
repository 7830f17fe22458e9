"""Every family of open_clip, shrunk: texts, heads, chunks, a step, an export; every method on four kinds of model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from closeness import bound, length, same
from models import families
from models.families import FAMILIES, build, shrunk_trunks

from tracer.core.errors import UserError
from tracer.methods.base import methods, options
from tracer.methods.text_probes import RandomTexts
from tracer.models.export import export
from tracer.models.registry import known_models, shipped_models
from tracer.models.student import Student, load
from tracer.models.trainable import ImageTower
from tracer.parallel import World
from tracer.runs.experiment import Experiment
from tracer.runs.plan import plan
from tracer.training.setup import build_learner, notices

HUGGING_FACE = [name for name, family in FAMILIES.items() if family.hugging_face]
KINDS = ("OpenAI ViT", "OpenAI ResNet", "SigLIP", "XLM-RoBERTa")
QUICK = {("SigLIP", "lipsum"), ("XLM-RoBERTa", "lipsum"), ("XLM-RoBERTa", "carot"), ("SigLIP", "ldifs")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    pytest.importorskip("transformers")
    with shrunk_trunks():
        yield tmp_path_factory.mktemp("families")


@pytest.mark.parametrize("name", FAMILIES)
def test_texts_heads_chunks_a_step_and_an_export(name: str, folder: Path, tmp_path: Path) -> None:
    student = build(name, folder)
    rounding = bound(length(student), dtype=torch.float32)
    assert families.text_gap(student) < rounding
    assert families.head_gap(student) < rounding
    assert families.chunk_gap(student) < bound(length(student))  # in float64
    before = {key: tensor.clone() for key, tensor in student.named_parameters()}
    buffers = {key: tensor.clone() for key, tensor in student.named_buffers()}
    state, loss = families.tracer_step(student)
    assert loss.total.isfinite()
    still = [key for key, tensor in student.named_parameters() if torch.equal(tensor, before[key])]
    assert [key for key in still if not idle(key)] == []
    assert [key for key, tensor in student.named_buffers() if not torch.equal(tensor, buffers[key])] == []
    assert state.shadow is not None
    assert state.shadow.step == 1
    assert families.export_gap(student, tmp_path / "export") < rounding


def idle(parameter: str) -> bool:
    """CoCa's decoder, a clamped scale, and the blocks of a random ResNet, whose outputs start at zero."""
    return bool(re.search(r"text_decoder|logit_scale|visual\.layer\d\.\d\.bn", parameter))


def test_every_config_belongs_to_a_family() -> None:
    covered = {config for name in FAMILIES for config in families.configs(name)}
    assert set(known_models()) - covered == set(shipped_models())


def test_the_page_lists_every_family() -> None:
    rows = (Path(__file__).parents[2] / "docs" / "models.md").read_text()
    for name, family in FAMILIES.items():
        assert f"| {name} | {len(families.configs(name))} | `{family.config}` | yes |" in rows


@pytest.mark.parametrize("name", HUGGING_FACE)
def test_padding_of_a_hugging_face_tower_changes_nothing(name: str, folder: Path) -> None:
    student = build(name, folder).eval()
    cut = student.tokenise(families.TEXTS)
    assert cut.shape[1] == 8  # the longest text has six words
    longer = torch.nn.functional.pad(cut, (0, 5), value=1)
    same(student.embed_text(cut), student.embed_text(longer), length(student))


@pytest.mark.parametrize("name", ["SigLIP", "XLM-RoBERTa"])
def test_a_frozen_text_tower_embeds_each_caption_once(name: str, folder: Path) -> None:
    student = build(name, folder)
    ImageTower()(student)
    student.train()
    student.remember_texts()
    batch = families.batch(student)
    calls = []
    student.clip.text.register_forward_hook(lambda *_: calls.append(1))
    first, again = (student(batch).text for _ in range(2))
    assert len(calls) == len(families.TEXTS)
    assert torch.equal(first, again)
    other = families.batch(student)._replace(text=batch.text[:1], caption=torch.zeros(5, dtype=torch.int64))
    assert torch.equal(student(other).text[0], first[0])  # whatever else is in the batch
    student.text_cache = None
    same(student(batch).text, first, length(student))  # no dropout either


def test_a_tower_that_learns_or_is_cut_at_its_end_remembers_nothing(folder: Path) -> None:
    student = build("XLM-RoBERTa", folder)
    student.remember_texts()
    assert student.text_cache is None
    clip = build("OpenAI ViT", folder)
    ImageTower()(clip)
    clip.remember_texts()
    assert clip.text_cache is None


def test_random_texts_of_a_hugging_face_tokenizer(folder: Path) -> None:
    student = build("XLM-RoBERTa", folder)
    tokens = RandomTexts(20, 5).prepare(student, ())(np.random.default_rng(0), list)
    assert tokens.shape == (20, 7)
    assert tokens[:, 0].unique().tolist() == [0]
    assert tokens[:, -1].unique().tolist() == [2]
    assert 4 <= tokens[:, 1:-1].min() < tokens[:, 1:-1].max() < 4 + len(families.WORDS)
    padded = RandomTexts(20, 5).prepare(build("SigLIP", folder), ())(np.random.default_rng(0), list)
    assert padded.shape == (20, 16)
    assert padded[:, 7:].unique().tolist() == [1]
    with pytest.raises(UserError, match="1 to 14"):
        RandomTexts(20, 15).prepare(student, ())


def test_what_does_not_apply_is_said(folder: Path) -> None:
    from tracer.methods.base import method

    (message,) = notices(method("tracer"), build("SigLIP", folder))
    assert "image tower" in message
    (message,) = notices(method("flyp"), build("CoCa", folder))
    assert "decoder" in message
    assert notices(method("tracer"), build("PE", folder)) == []


def test_a_coca_with_random_weights_is_finite_and_the_same_at_one_seed(folder: Path) -> None:
    one, two = (build("CoCa", folder).clip.text_decoder.text_projection for _ in range(2))
    assert torch.equal(one, two)
    assert 0.1 < float(one.detach().std()) < 1


def test_an_exported_coca_keeps_its_decoder(folder: Path, tmp_path: Path) -> None:
    student = build("CoCa", folder)
    student.clip.text_decoder.text_projection.data.fill_(0.5)
    export(student, tmp_path / "coca")
    assert (load(str(tmp_path / "coca")).clip.text_decoder.text_projection == 0.5).all()


@pytest.mark.parametrize("name", ["ConvNeXt", "Swin", "MobileCLIP", "SigLIP"])
def test_the_outputs_of_all_blocks(name: str, folder: Path) -> None:
    """LDIFS with `--variant blocks`, on towers without a class token."""
    student: Student = build(name, folder).eval()
    seen = student(families.batch(student), frozenset({"features"}))
    assert seen.features
    assert all(block.ndim == 2 and len(block) == 5 for block in seen.features)
    same(seen.image, student.embed_image(families.batch(student).image), length(student))


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        pytest.param(kind, name, marks=() if (kind, name) in QUICK else pytest.mark.slow)
        for kind in KINDS
        for name in methods()
        if name != "zeroshot"
    ],
)
def test_every_method_takes_a_step(kind: str, name: str, folder: Path) -> None:
    build(kind, folder)
    data = folder / "few.npz"
    images = np.random.default_rng(0).integers(256, size=(12, 32, 32, 3), dtype=np.uint8)
    np.savez(data, images=images, labels=np.arange(12) % 3)
    asked = {"anchors": str(data)} if "anchors" in {option.name for option in options(name)} else {}
    settled = plan(
        Experiment(
            data=str(data),
            method=name,
            options={**{option.name: option.default for option in options(name)}, **asked},
            model=str(folder / f"{kind.replace(' ', '-')}.json"),
            pretrained="none",
            templates="digit {}",
            steps=3,
            batch=4,
            lr=1e-3,
            precision="fp32",
        )
    )
    stages = [stage for stage in settled.method.stages if stage.share]
    student = build(kind, folder)
    weights = {key: tensor.clone() for key, tensor in student.state_dict().items()}
    for stage in stages:
        learner = build_learner(settled, stage, 3, student, weights, World("cpu", "fp32"))
        (loss, *_) = learner.step(1, learner.data[0])
        assert loss.total.isfinite()


@pytest.mark.parametrize("name", HUGGING_FACE)
def test_an_export_needs_the_files_of_its_text_tower_no_more(name: str, folder: Path, tmp_path: Path) -> None:
    student = build(name, folder).eval()
    export(student, tmp_path / "export")
    elsewhere = [folder / name, folder / "tokenizer"]
    for place in elsewhere:
        place.rename(place.with_suffix(".away"))
    try:
        back = load(str(tmp_path / "export")).eval()
    finally:
        for place in elsewhere:
            place.with_suffix(".away").rename(place)
    tokens = student.tokenise(families.TEXTS)
    assert torch.equal(back.tokenise(families.TEXTS), tokens)
    assert torch.equal(back.embed_text(tokens), student.embed_text(tokens))
