"""Every way that is shown for using a model gives the number that `tracer eval` gives, for every kind of result.

The ways are run to the letter: the code blocks of the cards and pages, and the lines that commands print. They read
photographs in a folder `photos`, and `photo.jpg`, from where they are run.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import tiny_transformers as tiny
import torch
from models.families import ROBERTA, tokenizer_folder
from PIL import Image

import tracer
from tracer.cli import main
from tracer.evaluation import measured
from tracer.runs.files import CHOSEN
from tracer.runs.run import Run

CLASSES = {"red": (160, 100, 100), 'a "green" {one}': (100, 160, 100), "sky_blue": (100, 100, 160)}
NAMES = tuple(sorted(name.replace("_", " ") for name in CLASSES))
EACH = 12
VISION = {"image_size": 28, "layers": 2, "width": 16, "head_width": 8, "patch_size": 14}
TEXT = {"context_length": 16, "vocab_size": 49408, "width": 8, "heads": 1, "layers": 1}
MODELS: dict[str, dict[str, Any]] = {
    "vit": {"embed_dim": 8, "vision_cfg": VISION, "text_cfg": TEXT},
    "sigmoid": {"embed_dim": 8, "init_logit_bias": -10, "vision_cfg": VISION, "text_cfg": TEXT},
    "own-text": {"embed_dim": 8, "vision_cfg": VISION, "text_cfg": {"context_length": 16, "hf_proj_type": "mlp"}},
    "batchnorm": {
        "embed_dim": 8,
        "vision_cfg": {"image_size": 32, "layers": [1, 1, 1, 1], "width": 8, "patch_size": None},
        "text_cfg": TEXT,
    },
}


class Kind(NamedTuple):
    """A kind of result: how it is trained, and what is then made of the run."""

    model: str
    method: str = "flyp"
    settings: dict[str, Any] = {}  # noqa: RUF012
    merged: bool = False
    formats: tuple[str, ...] = ("open_clip", "hf", "onnx")


KINDS = {
    "finetuned": Kind("vit"),
    "its own prompts": Kind("vit", settings={"templates": "{} things"}),
    "probe": Kind("vit", "lp"),
    "unit probe": Kind("vit", "lp", {"unit": True}, formats=("open_clip", "hf")),
    "BatchNorm probe": Kind("batchnorm", "lp", formats=("open_clip", "onnx")),
    "BatchNorm": Kind("batchnorm", formats=("open_clip",)),
    "mixture": Kind("vit", merged=True),
    "mixed probe": Kind("vit", "lp", merged=True, formats=("open_clip", "hf")),
    "adapter": Kind("vit", settings={"adapter": "lora", "lr": 1e-2}, formats=("open_clip", "hf")),
    "learned tokens": Kind("vit", settings={"adapter": "prompts", "lr": 1e-2}, formats=("onnx",)),
    "sigmoid": Kind("sigmoid", formats=("open_clip", "onnx")),
    "own text tower": Kind("own-text", formats=("open_clip", "onnx")),
    "of transformers": Kind("transformers"),
}


class Home(NamedTuple):
    """A folder with photographs in `photos` to answer for, and in `train` to learn from."""

    folder: Path

    def model(self, name: str) -> str:
        """The file or folder of a model with random weights."""
        place = self.folder / f"{name}.json"
        if name == "transformers":
            tiny.write("clip", self.folder / "clip")
            return str(self.folder / "clip")
        config = json.loads(json.dumps(MODELS[name]))
        if name == "own-text":
            (self.folder / "tower").mkdir(exist_ok=True)
            (self.folder / "tower" / "config.json").write_text(json.dumps({"model_type": "roberta", **ROBERTA}))
            config["text_cfg"] |= {
                "hf_model_name": str(self.folder / "tower"),
                "hf_tokenizer_name": str(tokenizer_folder(self.folder)),
            }
        place.write_text(json.dumps(config))
        return str(place)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home, noise = Home(tmp_path_factory.mktemp("answers")), np.random.default_rng(0)
    for folder in ("photos", "train"):
        for name, colour in CLASSES.items():
            (home.folder / folder / name).mkdir(parents=True)
            for number in range(EACH):
                pixels = noise.normal(colour, 60, (38, 44, 3)).clip(0, 255).astype(np.uint8)
                Image.fromarray(pixels).save(home.folder / folder / name / f"{number}.png")
    shutil.copy(home.folder / "photos" / "red" / "0.png", home.folder / "photo.jpg")
    return home


@pytest.fixture(scope="module")
def finished(home: Home) -> Callable[[str], Run]:
    """The finished run of a kind, made once; a temperature is fitted on few images."""

    @cache
    def run(name: str) -> Run:
        kind = KINDS[name]
        if kind.merged:
            return tracer.merge(run("unit probe" if kind.method == "lp" else "finetuned"), wise=0.5, device="cpu")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(measured, "FEWEST_TO_FIT", 10)
            return tracer.finetune(
                str(home.folder / "train"),
                held_out=str(home.folder / "photos"),
                model=home.model(kind.model),
                method=kind.method,
                out=home.folder / "runs" / name,
                callback=lambda report: None,
                device="cpu",
                **{"pretrained": "auto" if kind.model == "transformers" else "none"},
                **{"steps": 12, "batch": 12, "lr": 1e-2, "augment": "none", "workers": 0, **kind.settings},
            )

    return run


WAYS = [(name, way) for name, kind in KINDS.items() for way in kind.formats]


@cache
def number(folder: Path, photos: Path, weights: str) -> float:
    """The accuracy that `tracer eval` gives, and that is not the one of another model."""
    scores = tracer.evaluate(folder, photos, weights=weights, device="cpu")
    return scores[weights]["photos"]["accuracy"].value


def right(lines: str) -> float:
    """The share of photographs that lines of a file and a name call by the name of its folder."""
    found = [
        Path(line.partition(".png")[0]).parent.name.replace("_", " ")
        == next(name for name in NAMES if line.partition(".png")[2].lstrip(": ").startswith(name))
        for line in lines.splitlines()
        if ".png" in line
    ]
    assert len(found) == EACH * len(NAMES)
    return float(np.mean(found))


def blocks(folder: Path) -> list[str]:
    """The Python on the card of an export."""
    return re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(encoding="utf-8"), re.DOTALL)


@contextmanager
def elsewhere(home: Home, made: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder with nothing but an export and the photographs; the models that runs began with are out of reach."""
    place.mkdir()
    shutil.move(made, place / made.name)
    (place / "photos").symlink_to(home.folder / "photos")
    (place / "photo.jpg").symlink_to(home.folder / "photo.jpg")
    hidden = [path for path in home.folder.iterdir() if path.name in ("tower", "tokenizer", "clip")]
    for path in hidden:
        path.rename(path.with_name(f"gone-{path.name}"))
    monkeypatch.chdir(place)
    try:
        yield
    finally:
        for path in hidden:
            path.with_name(f"gone-{path.name}").rename(path)


@pytest.mark.parametrize("name", KINDS)
def test_a_run(name: str, finished: Callable[[str], Run], home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    run = finished(name)
    model, expected = tracer.load(run), number(run.folder, home.folder / "photos", run.weights)
    print(name, expected, number(run.folder, home.folder / "photos", "pretrained"))
    assert right(str(model.predict(home.folder / "photos"))) == expected
    scores = tracer.evaluate(model, home.folder / "photos", device="cpu")
    assert next(iter(scores.values()))["photos"]["accuracy"].value == expected


@pytest.mark.filterwarnings("ignore")  # of other libraries
@pytest.mark.parametrize(("name", "way"), WAYS)
def test_an_export(
    name: str,
    way: str,
    finished: Callable[[str], Run],
    home: Home,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = finished(name)
    expected = number(run.folder, home.folder / "photos", run.weights)
    asked = ["export", str(run.folder), "--weights", run.weights, "--format", way, "--out", str(tmp_path / "my model")]
    assert main(asked) == 0
    said = capsys.readouterr().out
    with elsewhere(home, tmp_path / "my model", tmp_path / "place", monkeypatch):
        for code in blocks(Path("my model")):
            exec(code, {})
            assert right(capsys.readouterr().out) == expected, code
