"""A run knows what it was made of: other images, labels, prompts or models under the same names are refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from huggingface_hub import constants
from PIL import Image

from tracer.cli.app import main
from tracer.core.errors import UserError
from tracer.evaluation.target import target
from tracer.models.download import Download
from tracer.models.export import export
from tracer.models.source import CONFIG_FILE, WEIGHTS_DIGEST
from tracer.models.student import load
from tracer.runs.experiment import Experiment
from tracer.runs.identity import identity
from tracer.runs.plan import plan
from tracer.runs.run import Run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twelve images in two classes, a table of them, an archive, a templates file and a model."""
    pixels = np.random.default_rng(0).integers(0, 256, (12, 28, 28, 3), dtype=np.uint8)
    for i, each in enumerate(pixels):
        path = tmp_path / "photos" / ("cat", "dog")[i % 2] / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(each).save(path)
    labels = np.array(["cat", "dog"] * 6)
    rows = [
        f"photos/{label}/{i}.png,{label},a {label} of number {i},{'val' if i in (2, 3) else 'train'}"
        for i, label in enumerate(labels)
    ]
    (tmp_path / "photos.csv").write_text("\n".join(["image,label,caption,split", *rows, ""]))
    (tmp_path / "names.json").write_text(json.dumps({"cat": "house cat", "dog": "dog"}))
    for i, label in enumerate(("cat", "dog")):
        path = tmp_path / "retained" / label / "1.png"
        path.parent.mkdir(parents=True)
        Image.fromarray(pixels[i]).save(path)
    np.savez(tmp_path / "photos.npz", images=pixels, labels=labels)
    (tmp_path / "prompts.txt").write_text("a photo of a {}\n")
    export(load("tiny-28", seed=3), tmp_path / "model")
    (tmp_path / "model" / "spiece.model").write_bytes(b"\xff\xfa")
    return tmp_path


def exchange(one: Path, two: Path) -> None:
    aside = one.with_name("aside")
    one.rename(aside)
    two.rename(one)
    aside.rename(two)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def other_pixels(folder: Path) -> None:
    stored = dict(np.load(folder / "photos.npz"))
    np.savez(folder / "photos.npz", **{**stored, "images": 255 - stored["images"]})


def other_config(folder: Path) -> None:
    path = folder / "model" / "open_clip_config.json"
    config = json.loads(path.read_text())
    config["model_cfg"]["quick_gelu"] = not config["model_cfg"].get("quick_gelu", False)
    path.write_text(json.dumps(config))


def other_normalisation(folder: Path) -> None:
    path = folder / "model" / "open_clip_config.json"
    config = json.loads(path.read_text())
    config["preprocess_cfg"]["mean"] = [0.1, 0.2, 0.3]
    path.write_text(json.dumps(config))


def other_weights(folder: Path) -> None:
    export(load("tiny-28", seed=4), folder / "other")
    weights = folder / "model" / "open_clip_model.safetensors"
    weights.write_bytes((folder / "other" / "open_clip_model.safetensors").read_bytes())


TABLE = ("a caption", "a label", "a split", "class names")  # changes of the table
CHANGES = {
    "a caption": (
        lambda folder: edit(folder / "photos.csv", "number 5", "number five"),
        "with other training captions",
    ),
    "a label": (
        lambda folder: edit(folder / "photos.csv", "5.png,dog", "5.png,cat"),
        "with other training labels",
    ),
    "a split": (
        lambda folder: edit(folder / "photos.csv", "number 5,train", "number 5,val"),
        "with other training images.*held-out images",
    ),
    "class names": (
        lambda folder: edit(folder / "names.json", "house cat", "wild cat"),
        "with other training class names and held-out class names",
    ),
    "retained images": (
        lambda folder: exchange(folder / "retained" / "cat" / "1.png", folder / "retained" / "dog" / "1.png"),
        "with other retained set 1 images",
    ),
    "weights": (other_weights, "has changed since .* in its weights"),
    "tokenizer": (
        lambda folder: (folder / "model" / "tokenizer.json").write_text("{}"),
        "in its model config",
    ),
    "binary tokenizer": (
        lambda folder: (folder / "model" / "spiece.model").write_bytes(b"\xff\xfb"),
        "in its model config",
    ),
    "exchanged classes": (
        lambda folder: exchange(folder / "photos" / "cat", folder / "photos" / "dog"),
        "with other training images.*held-out images",
    ),
    "exchanged files": (
        lambda folder: exchange(folder / "photos" / "cat" / "0.png", folder / "photos" / "dog" / "1.png"),
        "with other (training|held-out) images",
    ),
    "a new class": (
        lambda folder: (folder / "photos" / "dog").rename(folder / "photos" / "wolf"),
        "class names",
    ),
    "pixels": (other_pixels, "with other training images and held-out images"),
    "templates": (
        lambda folder: (folder / "prompts.txt").write_text("a drawing of a {}\n"),
        "with other templates",
    ),
    "config": (other_config, "in its model config"),
    "normalisation": (other_normalisation, "in its model config"),
}


def experiment(folder: Path, change: str) -> Experiment:
    data = folder / ("photos.npz" if change == "pixels" else "photos.csv" if change in TABLE else "photos")
    return Experiment(
        data=str(data),
        model=str(folder / "model"),
        steps=2,
        batch=4,
        templates=str(folder / "prompts.txt"),
        precision="fp32",
        classes=str(folder / "names.json") if change in TABLE else None,
        retain=(str(folder / "retained"),) if change == "retained images" else (),
    )


@pytest.mark.parametrize("change", CHANGES)
def test_a_run_does_not_go_on_with_something_else(folder: Path, change: str, capsys) -> None:
    asked = experiment(folder, change)
    run = Run.create(plan(asked), folder / "run")
    run.require(plan(asked))
    before = identity(plan(asked))
    alter, message = CHANGES[change]
    alter(folder)
    with pytest.raises(UserError, match=message):
        run.require(plan(asked))
    assert identity(plan(asked)) != before
    assert main(["resume", str(run.folder), "--device", "cpu"]) == 2
    assert "choose another --out" in " ".join(capsys.readouterr().err.split())


def test_weights_of_any_name_that_open_clip_reads_are_known(folder: Path) -> None:
    weights, config = (folder / "model" / name for name in ("open_clip_model.safetensors", CONFIG_FILE))
    config.write_text(
        json.dumps({**json.loads(config.read_text()), WEIGHTS_DIGEST: None})
    )  # as others write it
    other_name = weights.rename(weights.with_name("model.safetensors"))
    run = Run.create(plan(experiment(folder, "")), folder / "run")
    export(load("tiny-28", seed=4), folder / "other")
    other_name.write_bytes((folder / "other" / weights.name).read_bytes())
    with pytest.raises(UserError, match="in its weights"):
        run.require_start()


def test_weights_that_are_a_device_are_refused(folder: Path) -> None:
    """A device in the folder of a stranger would be read without an end."""
    weights = folder / "model" / "open_clip_model.safetensors"
    weights.unlink()
    weights.symlink_to("/dev/zero")
    with pytest.raises(UserError, match=r"open_clip_model.safetensors is no file"):
        identity(plan(experiment(folder, "")))


def test_weights_that_were_downloaded_again_are_noticed(folder: Path, monkeypatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder / "hub"))
    repository = folder / "hub" / f"models--{Download('RN50', 'openai').repository.replace('/', '--')}"
    weights = repository / "snapshots" / "1a2b" / Download("RN50", "openai").files[0]
    for path, content in ((weights, "first"), (repository / "refs" / "main", "1a2b")):
        path.parent.mkdir(parents=True)
        path.write_text(content)
    by_name = Experiment(data=str(folder / "photos"), model="RN50", pretrained="openai", steps=2, batch=4)
    run = Run.create(plan(by_name), folder / "run")
    run.require_start()
    weights.write_text("second")
    with pytest.raises(UserError, match=f"in its {weights.name}"):
        run.require_start()
    weights.unlink()  # a finished run can be read where its model is not
    run.require_start()


def test_a_finished_run_says_what_has_changed_since(folder: Path, capsys) -> None:
    run = Run.create(plan(experiment(folder, "")), folder / "run")
    (run.folder / "result.json").write_text("{}")
    assert main(["resume", str(run.folder)]) == 0
    assert "warning" not in capsys.readouterr().err
    CHANGES["templates"][0](folder)
    CHANGES["exchanged classes"][0](folder)
    assert main(["resume", str(run.folder)]) == 0
    output = capsys.readouterr()
    assert "is finished" in output.out
    assert "training images, held-out images and templates have changed" in " ".join(output.err.split())
    other_weights(folder)
    main(["resume", str(run.folder)])
    assert "in its weights" in " ".join(capsys.readouterr().err.split())


def test_a_run_is_evaluated_with_the_templates_that_it_began_with(folder: Path) -> None:
    run = Run.create(plan(experiment(folder, "")), folder / "run")
    began = target(run, "result", "x").task.templates
    (folder / "prompts.txt").unlink()
    assert target(run, "result", "x").task.templates == began != ()


def test_a_config_file_is_known_as_a_folder_is(folder: Path) -> None:
    config = json.loads((folder / "model" / "open_clip_config.json").read_text())["model_cfg"]
    file = folder / "own.json"
    file.write_text(json.dumps(config))
    asked = Experiment(data=str(folder / "photos"), model=str(file), pretrained="none", steps=2, batch=4)
    run = Run.create(plan(asked), folder / "run")
    run.require(plan(asked))
    file.write_text(json.dumps({**config, "quick_gelu": True}))
    with pytest.raises(UserError, match="in its model config"):
        run.require(plan(asked))
    with pytest.raises(UserError, match="in its model config"):
        run.student("pretrained")


def test_what_does_not_matter_may_change(folder: Path) -> None:
    asked = experiment(folder, "")
    run = Run.create(plan(asked), folder / "run")
    for file in (folder / "photos" / "cat" / "0.png", folder / "prompts.txt"):
        file.write_bytes(file.read_bytes())  # a new time, the same content
    (folder / "prompts.txt").rename(folder / "again.txt")
    moved = Experiment(**{**asked.to_json(), "templates": str(folder / "again.txt")})
    run.require(plan(moved))
