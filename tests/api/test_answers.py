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
from tracer.cli.training import show_result
from tracer.evaluation import measured
from tracer.models import download
from tracer.runs.files import CHOSEN
from tracer.runs.run import Run

pytestmark = pytest.mark.filterwarnings("ignore")  # of other libraries, and that prompts are cut
CLASSES = {"red": (160, 100, 100), 'a "green" {one}': (100, 160, 100), "sky_blue": (100, 100, 160)}
NAMES = tuple(sorted(name.replace("_", " ") for name in CLASSES))
EACH = 12
VISION = {"image_size": 28, "layers": 2, "width": 16, "head_width": 8, "patch_size": 14}
TEXT = {"context_length": 16, "vocab_size": 49408, "width": 8, "heads": 1, "layers": 1}
MODELS: dict[str, dict[str, Any]] = {
    "vit": {"embed_dim": 8, "vision_cfg": VISION, "text_cfg": TEXT},
    "sigmoid": {"embed_dim": 8, "init_logit_bias": -10, "vision_cfg": VISION, "text_cfg": TEXT},
    "own-text": {
        "embed_dim": 8,
        "vision_cfg": VISION,
        "text_cfg": {"context_length": 16, "hf_proj_type": "mlp"},
    },
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
    "BatchNorm probe": Kind(
        "batchnorm", "lp", {"solver": "lbfgs", "unit": True}, formats=("open_clip", "onnx")
    ),
    "mixture": Kind("vit", merged=True),
    "mixed probe": Kind("vit", "lp", merged=True, formats=("open_clip", "hf")),
    "adapter": Kind("vit", settings={"adapter": "lora", "lr": 1e-2}, formats=("open_clip", "hf")),
    "learned tokens": Kind("vit", settings={"adapter": "prompts", "lr": 1e-2}, formats=("onnx",)),
    "sigmoid": Kind("sigmoid", formats=("open_clip", "onnx")),
    "own text tower": Kind("own-text", formats=("open_clip", "onnx")),
    "of transformers": Kind("transformers", "lp", {"solver": "lbfgs", "unit": True}, formats=("hf",)),
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
            (self.folder / "tower" / "config.json").write_text(
                json.dumps({"model_type": "roberta", **ROBERTA})
            )
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
            return tracer.merge(
                run("unit probe" if kind.method == "lp" else "finetuned"), wise=0.5, device="cpu"
            )
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
                pretrained="auto" if kind.model == "transformers" else "none",
                **{"steps": 12, "batch": 12, "lr": 1e-2, "augment": "none", "workers": 0, **kind.settings},
            )

    return run


SLOW = {("hf", name) for name in ("its own prompts", "unit probe", "mixture", "mixed probe", "adapter")}
SLOW |= {("onnx", name) for name in ("its own prompts", "mixture", "sigmoid", "BatchNorm probe")}
WAYS = [
    pytest.param(name, way, marks=[pytest.mark.slow] if (way, name) in SLOW else [])
    for name, kind in KINDS.items()
    for way in kind.formats
]


def named(lines: str) -> dict[str, str]:
    """The name of each photograph, from lines that begin with its file and its name."""
    found = {}
    for line in filter(lambda line: ".png" in line, lines.splitlines()):
        file, rest = line.split(".png", 1)
        (found[f"{Path(file).parent.name}/{Path(file).name}"],) = (
            name for name in NAMES if rest.lstrip(": ").startswith(f"{name} ")
        )
    assert len(found) == EACH * len(NAMES)
    return found


def share(found: dict[str, str]) -> float:
    """The share of photographs that are called by the name of their folder."""
    return float(np.mean([file.split("/")[0].replace("_", " ") == name for file, name in found.items()]))


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


@pytest.fixture(scope="module")
def answers(finished: Callable[[str], Run], home: Home) -> Callable[[str], dict[str, str]]:
    """The name that `tracer.load(run).predict` gives each photograph; their share is the number of `tracer eval`."""

    @cache
    def of(name: str) -> dict[str, str]:
        run = finished(name)
        found = named(str(tracer.load(run).predict(home.folder / "photos")))
        scores = tracer.evaluate(run.folder, home.folder / "photos", weights=run.weights, device="cpu")
        assert share(found) == scores[run.weights]["photos"]["accuracy"].value
        assert len(set(found.values())) > 1, "a model that always says the same shows nothing"
        return found

    return of


@pytest.mark.parametrize("name", KINDS)
def test_a_run(
    name: str, finished: Callable[[str], Run], answers: Callable[[str], dict[str, str]], home: Home
) -> None:
    """`tracer.load` gives a number that the pretrained model does not, also given to `evaluate` again."""
    model = tracer.load(finished(name))
    scores = tracer.evaluate(model, home.folder / "photos", device="cpu")
    assert next(iter(scores.values()))["photos"]["accuracy"].value == share(answers(name))
    before = tracer.load(finished(name), weights="pretrained").predict(home.folder / "photos")
    assert named(str(before)) != answers(name)


@pytest.mark.parametrize(("name", "way"), WAYS)
def test_an_export(
    name: str,
    way: str,
    finished: Callable[[str], Run],
    answers: Callable[[str], dict[str, str]],
    home: Home,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    record_property: Callable[[str, object], None],
) -> None:
    """Its card, the line that `export` prints, and `tracer eval`, in a folder with nothing else.

    `--junitxml` has the number of each kind and way.
    """
    run, expected, made = finished(name), answers(name), tmp_path / "my model"
    record_property("accuracy", share(expected))
    asked = ["export", str(run.folder), "--weights", run.weights, "--format", way, "--out", str(made)]
    assert main(asked) == 0
    said, photo = capsys.readouterr().out.splitlines(), tracer.load(run).predict(home.folder / "photo.jpg")
    shares = [each.probability for each in tracer.load(run).predict(home.folder / "photos")]
    with elsewhere(home, made, tmp_path / "place", monkeypatch):
        code = blocks(Path("my model"))
        assert len(code) == (1 if way == "onnx" else 2)
        for block in code:
            exec(block, {})
            lines = capsys.readouterr().out
            assert named(lines) == expected, block
        shown = [float(line.rsplit(" ", 1)[1]) for line in lines.splitlines() if ".png" in line]
        assert np.allclose(sorted(shown), sorted(shares), atol=2e-3), (
            "the temperature and all that scales the scores"
        )
        card = Path("my model", "README.md").read_text(encoding="utf-8")
        probe = KINDS[name].method == "lp"
        assert ("trained classifier" in card) == probe
        assert ("zero-shot-image-classification" in card) != probe
        if way == "onnx":
            assert said[-1].strip() == str(made / "README.md")
            assert main(["eval", "my model", "--data", "photos"]) == 2
            assert "is an ONNX export of tracer" in " ".join(capsys.readouterr().err.split())
            return
        assert ("trained classifier" in said[0]) == probe
        line = said[-1].replace(str(made.parent), str(Path.cwd()))
        assert eval(line)[0].name == photo[0].name
        assert main(["eval", "my model", "--data", "photos", "--format", "json", "--device", "cpu"]) == 0
        shown = json.loads(capsys.readouterr().out)
        assert f"{share(expected)}"[:6] in json.dumps(shown)


def place_of(home: Home, run: Run, place: Path, monkeypatch: pytest.MonkeyPatch, **how: Any) -> str:
    """Export a run as my-model into a new working folder with the photographs; the last block of its card."""
    place.mkdir()
    (place / "photos").symlink_to(home.folder / "photos")
    (place / "photo.jpg").symlink_to(home.folder / "photo.jpg")
    monkeypatch.chdir(place)
    return blocks(tracer.export(run, "my-model", **how))[-1]


@pytest.mark.parametrize("name", ["finetuned", "probe"])
def test_a_card_holds_under_older_versions_of_transformers(
    name: str,
    finished: Callable[[str], Run],
    answers: Callable[[str], dict[str, str]],
    home: Home,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Before version 5, `get_image_features` returned the features themselves."""
    import transformers

    code = place_of(home, finished(name), tmp_path / "place", monkeypatch, format="hf")
    for method in ("get_image_features", "get_text_features"):
        new = getattr(transformers.CLIPModel, method)
        monkeypatch.setattr(
            transformers.CLIPModel, method, lambda self, new=new, **inputs: new(self, **inputs).pooler_output
        )
    exec(code, {})
    assert named(capsys.readouterr().out) == answers(name)


def test_the_card_of_an_upload_holds_where_it_is_downloaded(
    finished: Callable[[str], Run],
    answers: Callable[[str], dict[str, str]],
    home: Home,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import huggingface_hub

    from tracer.api import export

    monkeypatch.setattr(export, "check_push", lambda name: None)
    monkeypatch.setattr(export, "push", lambda folder, name: "")
    monkeypatch.setattr(
        huggingface_hub, "snapshot_download", {"owner/probe": str(tmp_path / "place" / "my-model")}.get
    )
    place_of(home, finished("probe"), tmp_path / "place", monkeypatch, push_to="owner/probe")
    for code in blocks(Path("my-model")):
        exec(code, {})
        assert named(capsys.readouterr().out) == answers("probe")


@pytest.mark.parametrize("name", ["probe", "finetuned"])
def test_a_name_of_the_hub_or_with_a_prefix_has_its_classifier(
    name: str,
    finished: Callable[[str], Run],
    answers: Callable[[str], dict[str, str]],
    home: Home,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    repository = tmp_path / "hub" / "models--owner--model"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("0" * 40)
    folder = tracer.export(finished(name), repository / "snapshots" / ("0" * 40))
    monkeypatch.setattr(download.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(download.constants, "HF_HUB_OFFLINE", True)
    for model in ("hf-hub:owner/model", f"local-dir:{folder}"):
        assert named(str(tracer.load(model).predict(home.folder / "photos"))) == answers(name)


def test_what_fit_chose_is_what_answers(
    finished: Callable[[str], Run],
    answers: Callable[[str], dict[str, str]],
    home: Home,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The run stands for the mixture: in Python, and in the commands that are given no weights."""
    run = finished("mixed probe")
    best = Path(shutil.copytree(run.folder, tmp_path / "best"))
    (best / CHOSEN).write_text(json.dumps({"weights": run.weights, "sentence": "It is good."}))
    assert named(str(tracer.load(best).predict(home.folder / "photos"))) == answers("mixed probe")
    assert main(["export", str(best), "--out", str(tmp_path / "out")]) == 0
    assert named(str(tracer.load(tmp_path / "out").predict(home.folder / "photos"))) == answers("mixed probe")
    capsys.readouterr()
    assert main(["eval", str(best), "--data", str(home.folder / "photos"), "--format", "json"]) == 0
    assert str(share(answers("mixed probe")))[:6] in capsys.readouterr().out


@pytest.mark.parametrize("name", ["finetuned", "probe"])
def test_the_line_that_training_prints(
    name: str, finished: Callable[[str], Run], home: Home, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    run = finished(name)
    show_result(run)
    (line,) = (line for line in capsys.readouterr().out.splitlines() if "tracer.load(" in line)
    monkeypatch.chdir(home.folder)
    assert eval(line.strip())[0].top == tracer.load(run).predict("photo.jpg")[0].top


def test_the_line_of_the_page_on_exports(
    finished: Callable[[str], Run], home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    run, page = finished("probe"), Path(__file__).parents[2] / "docs" / "export.md"
    code = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)[0]
    place_of(home, run, tmp_path / "place", monkeypatch)
    exec(code, {})
    assert capsys.readouterr().out == f"{tracer.load(run).predict('photo.jpg')}\n"


def test_the_lines_that_load_an_adapter(
    finished: Callable[[str], Run], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import peft

    run, names = finished("adapter"), {"tracer": tracer}
    assert main(["export", str(run.folder), "--format", "peft", "--out", str(tmp_path / "adapter")]) == 0
    exec(
        "\n".join(line.strip() for line in capsys.readouterr().out.splitlines()[-2:]),
        {**names, "peft": peft},
        names,
    )
    pixels = torch.randn(2, 3, 28, 28, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        own, theirs = (clip.encode_image(pixels) for clip in (tracer.load(run).student.clip, names["model"]))
    torch.testing.assert_close(own, theirs, rtol=0, atol=1e-5)
