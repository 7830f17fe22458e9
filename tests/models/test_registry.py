"""Models are found by name, folder, file or hub name; what is none of them is refused before any work."""

from __future__ import annotations

import json
import logging
import os
import pickle
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from tracer.core.errors import UserError
from tracer.models import download
from tracer.models.open_clip_compat import open_clip
from tracer.models.registry import known_models, locate, pretrained_tag
from tracer.models.source import CONFIG_FILE, WEIGHTS_FILE
from tracer.models.student import Student, load

TINY = json.loads((files("tracer.models") / "configs" / "tiny-28.json").read_text())


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """open_clip's registry as it was, whatever config files a test adds."""
    known_models()
    monkeypatch.setattr(open_clip.factory, "_MODEL_CONFIG_PATHS", list(open_clip.factory._MODEL_CONFIG_PATHS))
    monkeypatch.setattr(open_clip.factory, "_MODEL_CONFIGS", dict(open_clip.factory._MODEL_CONFIGS))


@pytest.fixture
def no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise FileNotFoundError("no such repository, or no network")

    monkeypatch.setattr(open_clip.factory, "download_pretrained_from_hf", refuse)
    monkeypatch.setattr(open_clip.factory, "download_pretrained", refuse)
    monkeypatch.setattr(open_clip, "download_pretrained", refuse)
    monkeypatch.setattr(download, "unreachable", lambda url: None)


def weights(student: Student) -> dict[str, torch.Tensor]:
    return {name: tensor.contiguous() for name, tensor in student.clip.state_dict().items()}


def equal(a: Student, b: Student) -> bool:
    return all(torch.equal(p, q) for p, q in zip(a.clip.parameters(), b.clip.parameters(), strict=True))


def test_shipped_and_open_clip_s_models_are_known() -> None:
    assert {"tiny-28", "tiny-32", "ViT-B-16", "RN50", "ViT-B-16-SigLIP"} <= set(known_models())


@pytest.mark.parametrize(("name", "size"), [("tiny-28", 28), ("tiny-32", 32)])
def test_small_models_take_the_same_path(name: str, size: int) -> None:
    place = locate(name)
    assert place.config["vision_cfg"]["image_size"] == size
    student = load(name)
    assert student.preprocess_cfg["size"] in (size, (size, size))
    assert student.training


@pytest.mark.parametrize(
    ("model", "tag", "quick"),
    [
        ("ViT-B-16", "openai", True),
        ("ViT-B/16", "openai", True),  # OpenAI's own spelling
        ("ViT-L-14", "openai", True),
        ("RN50", "openai", True),
        ("ViT-B-16", "laion400m_e32", False),
        ("ViT-B-16", "laion2b_s34b_b88k", False),
        ("ViT-B-16-quickgelu", "openai", True),
        ("ViT-B-16", None, False),
    ],
)
def test_activation_belongs_to_the_weights(model: str, tag: str | None, quick: bool) -> None:
    """OpenAI's weights under plain GELU load without a word and score wrongly. Nothing is downloaded here."""
    place = locate(model, tag)
    assert bool(place.config.get("quick_gelu")) == quick
    if quick:
        assert place.config["quick_gelu"] is True  # an export carries it along


def test_quick_gelu_reaches_the_model(
    student: Student, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tag that says so builds with it: checked through to the activation, with local weights for the download."""
    file = tmp_path / "tiny.safetensors"
    save_file(weights(student), file)
    tags = {"tiny-28": {"old": {"quick_gelu": True, "mean": None, "std": None}}}
    monkeypatch.setattr(open_clip.pretrained, "_PRETRAINED", open_clip.pretrained._PRETRAINED | tags)
    monkeypatch.setattr(open_clip.factory, "download_pretrained", lambda *args, **kwargs: str(file))
    quick = load("tiny-28", "old")
    assert quick.config["quick_gelu"] is True
    assert type(quick.clip.visual.transformer.resblocks[0].mlp.gelu).__name__ == "QuickGELU"
    assert equal(quick, student)


SQUASHED = {"mean": (0.5,) * 3, "std": (0.5,) * 3, "interpolation": "bicubic", "resize_mode": "squash"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file whose content nobody looks at: models are located, not built."""
    path = tmp_path / "weights.safetensors"
    path.write_bytes(b"")
    return path


@pytest.mark.parametrize(
    ("model", "tag", "quick", "preprocess"),
    [
        ("ViT-B-16-SigLIP", "", False, SQUASHED),
        ("MobileCLIP2-S0", "", False, {"mean": (0.0,) * 3, "std": (1.0,) * 3, "interpolation": "bilinear"}),
        ("ViT-B-16-quickgelu", "", True, {"resize_mode": "shortest"}),
        ("ViT-B-16", "openai", True, {"resize_mode": "shortest"}),
        ("ViT-B-16", "laion400m_e32", False, {"resize_mode": "shortest"}),
        ("ViT-H-14", "dfn5b", True, {"resize_mode": "squash"}),
        ("tiny-28", "", False, None),
    ],
)
def test_weights_in_a_file_are_like_the_published_ones(
    model: str, tag: str, quick: bool, preprocess: dict[str, Any] | None, file: Path
) -> None:
    place = locate(model, f"{file}@{tag}" if tag else str(file))
    assert place.files == [file]
    assert bool(place.config.get("quick_gelu")) == quick
    if preprocess is None:
        assert place.preprocess is None
    else:
        assert place.preprocess is not None
        assert preprocess.items() <= place.preprocess.items()


@pytest.mark.parametrize("model", ["ViT-B-16", "ViT-B-32", "ViT-L-14", "ViT-H-14"])
def test_where_published_weights_differ_the_file_must_say_which(model: str, file: Path) -> None:
    with pytest.raises(UserError, match=r"weights\.safetensors@TAG, with TAG one of @\w+"):
        locate(model, str(file))
    with pytest.raises(UserError, match="unknown weights of"):
        locate(model, f"{file}@opena")


def test_the_pixels_of_a_file_reach_the_model(
    student: Student, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tiny.safetensors"
    save_file(weights(student), path)
    tags = {"tiny-28": {"published": SQUASHED}}
    monkeypatch.setattr(open_clip.pretrained, "_PRETRAINED", open_clip.pretrained._PRETRAINED | tags)
    loaded = load("tiny-28", str(path))
    assert loaded.preprocess_cfg["resize_mode"] == "squash"
    assert loaded.mean.flatten().tolist() == [0.5] * 3
    assert equal(loaded, student)


def test_transformers_is_asked_for_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracer.models.registry.find_spec", lambda name: None)
    for model in ("ViT-B-16-SigLIP", "xlm-roberta-base-ViT-B-32", "ViT-L-14-worldwide"):
        with pytest.raises(
            UserError, match=r"needs the package transformers: pip install 'tracer-clip\[hf\]'"
        ):
            locate(model)
    locate("ViT-B-16")


@pytest.mark.parametrize(
    ("model", "pretrained", "named"),
    [
        ("ViT-B16", None, "ViT-B-16"),
        ("vit-b-16", None, "ViT-B-16"),
        ("tiny28", None, "tiny-28"),
        ("ViT-B-16", "open-ai", "openai"),
        ("ViT-B-16", "OPENAI", "openai"),
        ("ViT-B-16", "laion400m", "laion400m_e31"),
        ("ViT-B-16", "weights/none.safetensors", "no weights at weights/none.safetensors"),
        ("tiny-28", "none.pt", "no weights at none.pt: give a file$"),
        ("tiny-28", "openai", "unknown weights of tiny-28 'openai'"),
        ("missing.json", None, "no run or folder 'missing.json', and no model"),
    ],
)
def test_unknown_names_meet_the_nearest(model: str, pretrained: str | None, named: str) -> None:
    with pytest.raises(UserError, match=named):
        locate(model, pretrained)


class Hostile:
    """A pickle that leaves a file behind if anybody unpickles it."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.trace),)


@pytest.mark.filterwarnings("ignore::UserWarning")  # torch remarks on the protocol of foreign pickles
@pytest.mark.parametrize("writer", ["torch", "pickle"])
def test_code_in_a_weights_file_never_runs(tmp_path: Path, writer: str) -> None:
    trace, file = tmp_path / "trace", tmp_path / "weights.pt"
    if writer == "torch":
        torch.save({"state_dict": Hostile(trace)}, file)
    else:
        file.write_bytes(pickle.dumps(Hostile(trace)))
    with pytest.raises(UserError, match="must hold weights and nothing else") as raised:
        load("tiny-28", str(file))
    assert "weights_only" not in str(raised.value)  # nobody is told how to run it after all
    assert not trace.exists()
    call, arguments = Hostile(trace).__reduce__()
    call(*arguments)
    assert trace.exists()  # what a careless reader calls does leave its trace


def unreadable(name: str, folder: Path, student: Student) -> Path:
    """A file of weights that are no weights of tiny-28."""
    file = folder / name
    good = weights(student)
    match file.stem:
        case "empty":
            file.write_bytes(b"")
        case "junk":
            file.write_bytes(b"not weights at all, " * 50)
        case "cut":
            save_file(good, file) if file.suffix == ".safetensors" else torch.save(good, file)
            file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
        case "foreign":
            torch.save({"layer.weight": torch.ones(2, 2)}, file)
        case "larger":
            save_file(weights(load("tiny-32")), file)
        case "partial":
            save_file({name: good[name] for name in list(good)[:-1]}, file)
        case "list":
            torch.save([1, 2, 3], file)
        case "nothing":
            torch.save({}, file)
    return file


@pytest.mark.parametrize(
    "name",
    [
        *("empty.pt", "junk.pt", "cut.pt", "foreign.pt", "list.pt", "nothing.pt"),
        *(
            "empty.safetensors",
            "junk.safetensors",
            "cut.safetensors",
            "larger.safetensors",
            "partial.safetensors",
        ),
    ],
)
def test_corrupt_and_foreign_weights_are_refused(name: str, student: Student, tmp_path: Path) -> None:
    file = unreadable(name, tmp_path, student)
    with pytest.raises(UserError, match=f"cannot build tiny-28 with weights .*{name}"):
        load("tiny-28", str(file))


def test_a_misfit_is_named(student: Student, tmp_path: Path) -> None:
    file = unreadable("partial.safetensors", tmp_path, student)
    missing = list(weights(student))[-1]
    with pytest.raises(UserError, match=missing):
        load("tiny-28", str(file))


@pytest.mark.parametrize("suffix", ["safetensors", "pt"])
def test_local_weights_are_the_weights(student: Student, tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"mine.{suffix}"
    save_file(weights(student), file) if suffix == "safetensors" else torch.save(weights(student), file)
    assert equal(load("tiny-28", str(file), seed=99), student)


def folder_of(student: Student, path: Path, config: Any = None) -> Path:
    path.mkdir()
    (path / CONFIG_FILE).write_text(json.dumps({"model_cfg": TINY} if config is None else config))
    save_file(weights(student), path / WEIGHTS_FILE)
    return path


@pytest.mark.parametrize("prefix", ["", "local-dir:"])
def test_a_folder_is_a_model(student: Student, tmp_path: Path, prefix: str) -> None:
    folder = folder_of(student, tmp_path / "export")
    assert equal(load(f"{prefix}{folder}", seed=99), student)


def test_a_folder_without_weights_is_no_model(student: Student, tmp_path: Path) -> None:
    """open_clip would go on with random weights."""
    folder = folder_of(student, tmp_path / "export")
    (folder / WEIGHTS_FILE).unlink()
    with pytest.raises(UserError, match="could not be loaded"):
        load(str(folder))


@pytest.mark.parametrize(
    ("content", "named"),
    [("{cut", "not a readable config"), ("[]", "no model_cfg"), ('{"a": 1}', "no model_cfg")],
)
def test_a_folder_with_a_broken_config_is_named(tmp_path: Path, content: str, named: str) -> None:
    (tmp_path / CONFIG_FILE).write_text(content)
    with pytest.raises(UserError, match=named):
        locate(str(tmp_path))


def test_a_folder_without_config_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"holds no {CONFIG_FILE}"):
        locate(str(tmp_path))


def test_a_config_file_is_a_model(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(TINY | {"embed_dim": 64}))
    student = load(str(file))
    assert student.config["embed_dim"] == 64
    assert student.embed_image(torch.zeros(1, 3, 28, 28)).shape == (1, 64)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("{cut", "not a readable config"),
        ('{"embed_dim": 8}', "no vision_cfg and no text_cfg"),
        ("3", "no embed_dim"),
    ],
)
def test_a_broken_config_file_harms_nothing_else(tmp_path: Path, content: str, named: str) -> None:
    file = tmp_path / "broken.json"
    file.write_text(content)
    with pytest.raises(UserError, match=named):
        locate(str(file))
    fine = tmp_path / "fine.json"
    fine.write_text(json.dumps(TINY))
    assert locate(str(fine)).name == "fine"


@pytest.mark.parametrize("name", ["a b/c", "a/b/c", "\0", "", "x" * 500])
def test_what_cannot_be_a_name_of_the_hub_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="cannot build hf-hub:"):
        locate(f"hf-hub:{name}")


@pytest.mark.usefixtures("no_hub")
@pytest.mark.parametrize("name", [5, True, "a b/c", "\0", "x" * 500])
@pytest.mark.parametrize("key", ["hf_tokenizer_name", "hf_model_name"])
def test_a_text_tower_without_a_name_is_refused(key: str, name: object, tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(TINY | {"text_cfg": {**TINY["text_cfg"], key: name}}))
    with pytest.raises(UserError, match="cannot build mine:"):
        load(str(file))
    assert locate(str(file)).outlook().startswith("cannot build mine:")


@pytest.mark.usefixtures("no_hub")
def test_an_unreachable_hub_is_a_sentence() -> None:
    with pytest.raises(UserError, match="cannot build hf-hub:nobody/nothing: no such repository"):
        locate("hf-hub:nobody/nothing")
    with pytest.raises(
        UserError, match="the weights 'openai' of ViT-B-16 are not on this machine and the download"
    ):
        locate("ViT-B-16", "openai").build()


def test_a_hub_model_whose_weights_do_not_come_is_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """open_clip would go on with random weights here too."""
    monkeypatch.setattr(download, "unreachable", lambda url: None)
    monkeypatch.setattr(
        open_clip.factory, "_get_hf_config", lambda *args, **kwargs: {"model_cfg": dict(TINY)}
    )

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise FileNotFoundError("no weights")

    monkeypatch.setattr(open_clip.factory, "download_pretrained_from_hf", refuse)
    with pytest.raises(UserError, match="could not be loaded"):
        locate("hf-hub:somebody/something").build()


def test_building_leaves_logging_as_it_was(caplog: pytest.LogCaptureFixture) -> None:
    level = logging.getLogger().level
    load("tiny-28")
    assert logging.getLogger().level == level
    assert not caplog.records


@pytest.mark.parametrize(
    ("model", "pretrained", "tag"),
    [
        ("ViT-B-16", "auto", "openai"),
        ("ViT-B/16", "auto", "openai"),
        ("ViT-B-16", "laion400m_e31", "laion400m_e31"),
        ("ViT-B-16", "none", None),
        ("tiny-28", "none", None),
        ("tiny-28", "some/file.pt", "some/file.pt"),
        ("hf-hub:a/b", "auto", None),
        ("local-dir:somewhere", "auto", None),
    ],
)
def test_which_weights_are_meant(model: str, pretrained: str, tag: str | None) -> None:
    assert pretrained_tag(model, pretrained) == tag


@pytest.mark.parametrize(
    ("model", "pretrained", "named"),
    [
        ("tiny-28", "auto", "no OpenAI weights"),
        ("ViT-H-14", "auto", "laion2b_s32b_b79k"),
        ("hf-hub:a/b", "openai", "brings its own weights"),
    ],
)
def test_weights_that_cannot_be_meant(model: str, pretrained: str, named: str) -> None:
    with pytest.raises(UserError, match=named):
        pretrained_tag(model, pretrained)
