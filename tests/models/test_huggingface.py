"""Models of transformers come in and go out with the same weights, outputs, tokens and pixels."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_transformers as tiny
import torch
import transformers
from closeness import bound, length, same
from PIL import Image
from safetensors.torch import load_file, save_file

import tracer
from tracer.core.errors import UserError
from tracer.models import download
from tracer.models.export import export
from tracer.models.huggingface import architecture, source
from tracer.models.open_clip_compat import open_clip
from tracer.models.registry import known_models
from tracer.models.student import Student

PIXELS = torch.randn(3, 3, tiny.SIZE, tiny.SIZE, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module", autouse=True)
def tiny_trunk() -> Any:
    """timm's tower of the tests, in the table of SigLIP's towers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(architecture.TRUNKS, "wee", tiny.TRUNK)
        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        yield


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Any]]:
    """Per family: the folder and the model of transformers in it."""
    folders = {family: tmp_path_factory.mktemp(family) for family in tiny.FAMILIES}
    return {family: (folder, tiny.write(family, folder)) for family, folder in folders.items()}


@pytest.fixture
def copy(originals: dict[str, tuple[Path, Any]], tmp_path: Path) -> Path:
    """A CLIP folder of a test's own, to spoil."""
    return Path(shutil.copytree(originals["clip"][0], tmp_path / "copy"))


def own_embeddings(student: Student) -> tuple[torch.Tensor, torch.Tensor]:
    with torch.no_grad():
        return student.embed_image(PIXELS), student.embed_text(student.tokenise(tiny.TEXTS))


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_a_folder_of_transformers_computes_the_same_here(
    family: str, originals: dict[str, tuple[Path, Any]]
) -> None:
    folder, model = originals[family]
    student = tracer.load(folder).student
    theirs = tiny.embeddings(model, folder, PIXELS)
    same(own_embeddings(student), theirs, length(model), size=1)
    same(student.scale, model.logit_scale.exp().squeeze(), sums=1)
    if family != "clip":
        same(student.clip.logit_bias, model.logit_bias.squeeze(), sums=1)


@pytest.mark.parametrize("family", ["clip", "siglip"])
def test_images_become_the_same_pixels(family: str, originals: dict[str, tuple[Path, Any]]) -> None:
    folder, _ = originals[family]
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (tiny.SIZE, tiny.SIZE, 3), np.uint8))
    theirs = transformers.AutoImageProcessor.from_pretrained(folder)(image, return_tensors="pt")
    same(tracer.load(folder).student.preprocess(image), theirs.pixel_values, sums=1)


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_a_round_trip_is_exact(family: str, originals: dict[str, tuple[Path, Any]], tmp_path: Path) -> None:
    folder, model = originals[family]
    student = tracer.load(folder).student
    out = tmp_path / "out"
    difference = export(student, out, format="hf")
    assert difference is not None
    assert difference < bound(length(model), dtype=torch.float32)
    opened = transformers.AutoModel.from_pretrained(out)
    same(tiny.embeddings(opened, out, PIXELS), tiny.embeddings(model, folder, PIXELS), length(model), size=1)
    if family != "siglip2":  # which goes out as a SiglipModel of one size
        before, after = model.state_dict(), opened.state_dict()
        assert before.keys() == after.keys()
        assert all(torch.equal(before[name], after[name]) for name in before)
    again = tracer.load(out).student
    assert again.preprocess_cfg == student.preprocess_cfg
    text = {**student.config["text_cfg"], "hf_tokenizer_name": "out"}
    assert again.config == {**student.config, "text_cfg": text}
    for name, tensor in student.clip.state_dict().items():
        assert torch.equal(tensor, again.clip.state_dict()[name]), name
    processor = transformers.AutoProcessor.from_pretrained(out)
    assert processor.tokenizer(tiny.TEXTS[0]).input_ids


def test_an_open_clip_export_carries_its_tokenizer(
    originals: dict[str, tuple[Path, Any]], tmp_path: Path
) -> None:
    """open_clip alone, and tracer, find the tokenizer in the folder; the activation of SigLIP's tower is kept."""
    student, out = tracer.load(originals["siglip"][0]).student, tmp_path / "out"
    assert export(student, out) is None
    tokens = open_clip.get_tokenizer(f"local-dir:{out}")(tiny.TEXTS)
    assert torch.equal(tokens[:, : student.tokenise(tiny.TEXTS).shape[1]], student.tokenise(tiny.TEXTS))
    open_clip.create_model(f"local-dir:{out}", weights_only=True)
    assert all(map(torch.equal, own_embeddings(tracer.load(out).student), own_embeddings(student)))


def test_clip_s_own_tokenizer_goes_out(shared_student: Student, tmp_path: Path) -> None:
    texts = ["A photo of a dog, 12 cats & one café!", "it's", "x" * 200]
    export(shared_student, tmp_path / "out", format="hf")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    theirs = tokenizer(texts, padding="max_length", truncation=True, return_tensors="pt").input_ids
    ours = shared_student.tokeniser.tokeniser(texts)
    ends = ours.argmax(dim=1)
    for row in range(len(texts)):
        assert torch.equal(ours[row, : ends[row] + 1], theirs[row, : ends[row] + 1])


def test_cleaning_of_texts_goes_out_with_the_tokenizer(copy: Path, tmp_path: Path) -> None:
    """SigLIP's tokenizers in open_clip drop capitals and punctuation before transformers sees a text."""
    student = tracer.load(copy).student
    student.tokeniser.tokeniser.clean_fn = open_clip.tokenizer.get_clean_fn("canonicalize")
    export(student, tmp_path / "out", format="hf")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    for text in ("The, red_dog!", "  a.b  (c) "):
        ids = tokenizer(text).input_ids
        assert ids == student.tokenise(text)[0, : len(ids)].tolist()


def test_weights_in_several_files_are_read(originals: dict[str, tuple[Path, Any]], tmp_path: Path) -> None:
    tiny.write("clip", tmp_path / "parts", max_shard_size="10KB")
    assert not (tmp_path / "parts" / "model.safetensors").exists()
    parts, whole = tracer.load(tmp_path / "parts").student, tracer.load(originals["clip"][0]).student
    assert all(map(torch.equal, own_embeddings(parts), own_embeddings(whole)))


def test_weights_in_several_files_are_part_of_a_run_s_identity(tmp_path: Path) -> None:
    from tracer.runs.experiment import Experiment
    from tracer.runs.identity import start

    tiny.write("clip", tmp_path, max_shard_size="10KB")
    experiment = Experiment(data="digits", model=str(tmp_path))
    before, part = start(experiment), min(tmp_path.glob("model-*.safetensors"))
    content = part.read_bytes()
    part.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert start(experiment) != before
    part.unlink()
    with pytest.raises(UserError, match=f"lists {part.name}, which is not there"):
        start(experiment)


def edited(file: str, change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        content = json.loads((folder / file).read_text())
        change(content)
        (folder / file).write_text(json.dumps(content))

    return spoil


def renamed(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    weights["strange"] = weights.pop("logit_scale")
    save_file(weights, folder / "model.safetensors")


SPOILED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "family": (edited("config.json", lambda c: c.update(model_type="blip")), "'blip'.*clip, siglip, siglip2"),
    "families": (edited("config.json", lambda c: c.update(model_type=["clip"])), "'clip'.*clip, siglip"),
    "code": (edited("config.json", lambda c: c.update(auto_map={"AutoModel": "x.Y"})), "never does"),
    "act": (edited("config.json", lambda c: c["text_config"].update(hidden_act="relu")), "hidden_act"),
    "acts": (edited("config.json", lambda c: c["text_config"].update(hidden_act="gelu")), "one activation"),
    "number": (edited("config.json", lambda c: c["text_config"].update(hidden_size="x")), "a number above 0"),
    "half a neuron": (
        edited("config.json", lambda c: c["text_config"].update(intermediate_size=2.5)),
        "text_config.intermediate_size of .* is a whole number, not 2.5",
    ),
    "size": (edited("config.json", lambda c: c.update(projection_dim=10**9)), "projection_dim"),
    "shape": (edited("config.json", lambda c: c["vision_config"].update(hidden_size=32)), "another shape"),
    "crop": (edited("preprocessor_config.json", lambda c: c.update(crop_size=4)), "do not become 8"),
    "crops": (edited("preprocessor_config.json", lambda c: c.update(crop_size=[8])), "do not become 8"),
    "scale": (edited("preprocessor_config.json", lambda c: c.update(rescale_factor=1)), "1/255"),
    "mean": (edited("preprocessor_config.json", lambda c: c.update(image_mean=[1])), "mean is three numbers"),
    "means": (edited("preprocessor_config.json", lambda c: c.update(image_mean=1)), "mean is three numbers"),
    "resamples": (edited("preprocessor_config.json", lambda c: c.update(resample=[3])), "bicubic"),
    "resample": (edited("preprocessor_config.json", lambda c: c.update(resample=0)), "bicubic"),
    "no processor": (lambda folder: (folder / "preprocessor_config.json").unlink(), "save_pretrained"),
    "no tokenizer": (lambda folder: (folder / "tokenizer_config.json").unlink(), "tokenizer_config.json"),
    "pickle": (
        lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"),
        "other files",
    ),
    "names": (renamed, "have no logit_scale"),
}


@pytest.mark.parametrize("way", SPOILED)
def test_what_cannot_be_followed_is_refused(way: str, copy: Path) -> None:
    spoil, message = SPOILED[way]
    spoil(copy)
    with pytest.raises(UserError, match=message):
        tracer.load(copy)


def test_code_beside_a_tokenizer_is_not_run(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an explicit no, transformers asks at the terminal whether to run it."""
    (copy / "own.py").write_text("raise SystemExit('ran')\n")
    edited("tokenizer_config.json", lambda c: c.update(auto_map={"AutoTokenizer": ["own.T", "own.T"]}))(copy)
    edited("tokenizer_config.json", lambda c: c.update(tokenizer_class="T"))(copy)
    monkeypatch.setattr("builtins.input", lambda *args: pytest.fail("asked"))
    with suppress(UserError):
        tracer.load(copy).student.tokenise(tiny.TEXTS)
    assert "own" not in sys.modules


@pytest.mark.parametrize(("name", "bias"), [("ViT-B-32", -10), ("ViT-B-16-SigLIP", None)])
def test_a_bias_that_no_class_has_and_a_missing_one_are_refused(name: str, bias: float | None) -> None:
    config = open_clip.get_model_config(name)
    assert architecture.transformers_config(config, 49407)
    with pytest.raises(UserError, match="init_logit_bias"):
        architecture.transformers_config(config | {"init_logit_bias": bias}, 49407)


def test_every_config_of_open_clip_has_a_form_or_is_refused() -> None:
    formed = []
    for name in known_models():
        with suppress(UserError):
            config = architecture.transformers_config(open_clip.get_model_config(name), 49407)
            formed.append((name, config["model_type"]))
    expected = {("ViT-B-16", "clip"), ("ViT-B-32-quickgelu", "clip"), ("ViT-SO400M-14-SigLIP2", "siglip")}
    assert expected <= set(formed)
    refused = {"RN50", "convnext_base", "coca_ViT-B-32", "EVA02-B-16", "ViTamin-B", "MobileCLIP-S1"}
    assert not refused & {name for name, _ in formed}


def test_a_config_of_siglip_goes_there_and_back() -> None:
    own = open_clip.get_model_config("ViT-SO400M-14-SigLIP2")
    theirs = architecture.transformers_config(own, None, "gelu_pytorch_tanh")
    assert theirs["text_config"]["intermediate_size"] == 4304
    back = architecture.open_clip_config(theirs, "it", own["text_cfg"]["hf_tokenizer_name"])
    assert back["vision_cfg"]["timm_model_name"] == own["vision_cfg"]["timm_model_name"]
    assert back["text_cfg"]["context_length"] == own["text_cfg"]["context_length"]


@pytest.fixture
def cached(originals: dict[str, tuple[Path, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A repository of the hub that is in the cache of a machine without network."""
    repository = tmp_path / "hub" / "models--somebody--tiny"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("0" * 40)
    shutil.copytree(originals["clip"][0], repository / "snapshots" / ("0" * 40))
    monkeypatch.setattr(download.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(download.constants, "HF_HUB_OFFLINE", True)
    return "somebody/tiny"


def test_a_name_of_the_hub_is_a_model(cached: str, originals: dict[str, tuple[Path, Any]]) -> None:
    student = tracer.load(f"hf-hub:{cached}").student
    assert all(
        map(torch.equal, own_embeddings(student), own_embeddings(tracer.load(originals["clip"][0]).student))
    )
    assert student.config["text_cfg"]["hf_tokenizer_name"] == cached
    assert source.cached_repositories() == [cached]


def test_without_network_the_file_and_its_place_are_named(cached: str) -> None:
    file = Path(download.constants.HF_HUB_CACHE) / "models--somebody--tiny" / "snapshots" / ("0" * 40)
    (file / "model.safetensors").unlink()
    with pytest.raises(
        UserError, match=r"model\.safetensors of hf-hub:somebody/tiny is not on this machine"
    ) as e:
        tracer.load(f"hf-hub:{cached}")
    assert "hf download somebody/tiny" in str(e.value)
    assert str(download.constants.HF_HUB_CACHE) in str(e.value)
    with pytest.raises(UserError, match="hf-hub:nobody/model is not on this machine"):
        tracer.load("hf-hub:nobody/model")
    with pytest.raises(UserError, match="of timm/ViT-B-16-SigLIP"):
        download.reach_text_files(
            "ViT-B-16-SigLIP", open_clip.get_model_config("ViT-B-16-SigLIP")["text_cfg"]
        )
    with pytest.raises(UserError, match="the Hugging Face hub is hf-hub:somebody/tiny"):
        tracer.load("somebody/tiny")
