"""The five verbs from memory to a loaded model, against the command line."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from kept import measured
from PIL import Image
from tiny_transformers import FAMILIES, TRUNK, write

import tracer
from studies.faults.process import ForkedProcess
from tracer.api.inputs import data_name, data_names, data_settings
from tracer.cli import main
from tracer.core.errors import UserError
from tracer.data.embedded.digits import digits
from tracer.merging.evaluator import Scores
from tracer.models.huggingface import architecture
from tracer.models.module import from_module
from tracer.models.student import load, read_weights
from tracer.parallel import World
from tracer.runs.experiment import Experiment
from tracer.runs.plan import plan
from tracer.runs.run import Run
from tracer.training.loop import Report, Training

NAMES = ["zero", "one", "two"]
SETTINGS = {
    "templates": "the digit {}",
    "steps": 3,
    "batch": 8,
    "lr": 1e-3,
    "augment": "none",
    "device": "cpu",
}


@pytest.fixture(scope="module")
def arrays() -> tuple[np.ndarray, np.ndarray]:
    """Twelve images each of three digits."""
    examples = digits("train")
    chosen = np.concatenate([np.flatnonzero(examples.labels == digit)[:12] for digit in range(3)])
    return np.stack([np.asarray(examples.images[int(i)]) for i in chosen]), examples.labels[chosen]


@pytest.fixture
def folder(arrays: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> Path:
    """The same images as a folder of classes."""
    for number, (image, label) in enumerate(zip(*arrays, strict=True)):
        place = tmp_path / "digits" / NAMES[label]
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(place / f"{number:02d}.png")
    return tmp_path / "digits"


def command(folder: Path, out: Path) -> Run:
    flags = [f"--{name}={value}" for name, value in SETTINGS.items()]
    data = ["--data", str(folder), "--held-out", str(folder), "--model", "tiny-28", "--pretrained", "none"]
    assert main(["train", "tracer", *data, *flags, "--out", str(out), "--strength", "2"]) == 0
    return Run.open(out)


def equal(one: Path, other: Path) -> bool:
    first, second = read_weights(one), read_weights(other)
    return first.keys() == second.keys() and all(torch.equal(first[key], second[key]) for key in first)


@pytest.mark.filterwarnings("ignore:.*held-out images are also trained on")
@pytest.mark.filterwarnings("ignore:.*also trained on")
def test_from_memory_to_a_loaded_model_as_the_command_line_does(
    arrays: tuple[np.ndarray, np.ndarray], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    expected = command(folder, tmp_path / "command")

    # The folder's classes are in alphabetical order: the same labels for the arrays.
    images, labels = arrays
    order = sorted(range(3), key=NAMES.__getitem__)
    data = [(Image.fromarray(images[i]), NAMES[labels[i]]) for i in _as_in(folder)]
    reports: list[Report] = []
    run = tracer.finetune(
        data,
        classes=[NAMES[label] for label in order],
        held_out=data,
        model=(load("tiny-28", seed=0).clip, "tiny-28"),  # an open_clip module, as --pretrained none makes it
        method=tracer.methods.tracer(strength=2.0),
        out=tmp_path / "memory",
        callback=reports.append,
        **SETTINGS,
    )
    assert reports[-1].message.startswith("done in ")
    for name in ("student", "teacher", "result"):
        assert equal(expected.weights_file(name), run.weights_file(name)), name

    scores = tracer.evaluate(run, folder, templates="the digit {}", device="cpu")
    assert main(["eval", str(expected.folder), "--data", str(folder), "--device", "cpu"]) == 0
    rows = measured(expected.folder / "predictions" / "result")
    accuracy = scores["after"]["digits"]["accuracy"]
    assert accuracy == (*rows["accuracy"][3:6], 36)
    assert set(scores) == {"before", "after"}
    numbers = tracer.evaluate(
        run, arrays, classes=NAMES, templates="the digit {}", out=tmp_path / "numbers", device="cpu"
    )
    assert numbers["after"]["data"]["accuracy"] == accuracy
    assert "accuracy" in str(scores)
    assert scores._repr_html_().startswith("<pre ")
    assert "<td>held-out</td>" in run._repr_html_()

    merged = tracer.merge(run, wise=0.5, device="cpu")
    assert main(["merge", str(expected.folder), "--wise", "0.5", "--device", "cpu"]) == 0
    assert equal(expected.weights_file("wise-0.5"), merged.weights_file(merged.weights))

    exported = tracer.export(merged, tmp_path / "model")
    assert (
        main(["export", str(expected.folder), "--weights", "wise-0.5", "--out", str(tmp_path / "other")]) == 0
    )
    for name in ("open_clip_model.safetensors", "open_clip_config.json"):
        assert (exported / name).read_bytes() == (tmp_path / "other" / name).read_bytes()

    model = tracer.load(exported)
    assert not model.student.training
    pictures, prompts = [Image.fromarray(each) for each in images], [f"the digit {name}" for name in NAMES]
    image, text = model.embed(pictures), model.embed_text(prompts)
    np.testing.assert_allclose(np.linalg.norm(text, axis=1), 1, atol=1e-6)
    with torch.no_grad():
        student = tracer.load(merged).student
        assert np.abs(student.embed_image(pictures).numpy() - image).max() < 1e-6
        assert np.abs(student.embed_text(prompts).numpy() - text).max() < 1e-6
        with pytest.raises(UserError, match="a batch already"):
            student.embed_image(student.preprocess(pictures[0])[None])
        with pytest.raises(UserError, match="is a PIL image, and this is a Tensor"):
            student.embed_image([student.preprocess(pictures[0])])  # pyright: ignore[reportArgumentType]


def _as_in(folder: Path) -> list[int]:
    """The number of each image, in the order in which the folder is read."""
    return [int(file.stem) for place in sorted(folder.iterdir()) for file in sorted(place.iterdir())]


def test_the_same_call_again_returns_the_finished_run(
    arrays: tuple[np.ndarray, np.ndarray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    reports: list[Report] = []

    def finetune(pixels: np.ndarray, **settings: object) -> Run:
        data = (pixels, arrays[1])
        asked = {
            "classes": NAMES,
            "model": "tiny-28",
            "pretrained": "none",
            "method": "flyp",
            **SETTINGS,
            **settings,
        }
        return tracer.finetune(data, callback=reports.append, **asked)

    first = finetune(arrays[0])
    count = len(reports)
    assert finetune(arrays[0]).folder == first.folder
    assert len(reports) == count
    other = arrays[0].copy()
    other[0, 0, 0] += 1
    assert finetune(other, steps=2).folder != first.folder  # other pixels are other data
    with pytest.raises(UserError, match="another experiment"):
        finetune(other, out=first.folder)
    with pytest.raises(UserError, match="did you mean epochs"):
        finetune(arrays[0], epoch=3)


def test_data_of_another_process_are_named_when_resumed(
    arrays: tuple[np.ndarray, np.ndarray], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tracer.data.formats.memory import register

    def create() -> int:
        data = register((arrays[0][::-1], arrays[1][::-1]), NAMES)
        experiment = Experiment(data=data, model="tiny-28", pretrained="none", steps=2, batch=8)
        Run.create(plan(experiment), tmp_path / "run")
        return 0

    created = ForkedProcess(create).wait()
    assert created.code == 0, created.output
    assert main(["resume", str(tmp_path / "run")]) == 2
    assert "given from Python" in capsys.readouterr().err


def test_a_training_that_is_never_iterated_warns(
    arrays: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    experiment = Experiment(data="digits", model="tiny-28", pretrained="none", steps=2, batch=8)
    settled = plan(experiment)
    training = Training(settled, Run.create(settled, tmp_path / "run"), World("cpu", "fp32"))
    with pytest.warns(RuntimeWarning, match="was not trained"):
        del training
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        steps = iter(Training(settled, Run.open(tmp_path / "run"), World("cpu", "fp32")))
        next(steps)
        del steps


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("import tracer", {"torch", "open_clip", "numpy", "scipy", "rich"}),
        ("from tracer.cli import main; main(['--help'])", {"torch", "open_clip", "scipy"}),
    ],
)
def test_importing_the_package_and_its_help_import_nothing_heavy(code: str, heavy: set[str]) -> None:
    code = f"import sys; {code}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    modules = set(done.stdout.splitlines()[-1].split())
    assert "tracer" in modules
    assert modules.isdisjoint(heavy)


def test_the_forms_of_the_same_data_have_the_same_name(folder: Path) -> None:
    paths = sorted(folder.rglob("*.png"))
    labels = [path.parent.name for path in paths]
    forms = [
        paths,
        [str(path) for path in paths],
        (paths, labels),
        {"image": paths, "label": labels},
    ]
    assert len({data_name(form) for form in forms}) == 1
    assert data_names(paths) == (data_name(paths),)  # one data set, not a list of specs
    assert data_names(["one", Path("two")]) == ("one", "two")
    assert data_names(()) == ()
    assert data_settings(Path("one"), Path("names.txt")) == {"data": "one", "classes": "names.txt"}
    assert data_name((paths, labels[::-1])) != data_name(paths)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_module_of_transformers_is_a_model(
    family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(architecture.TRUNKS, "wee", TRUNK)
    written = write(family, tmp_path / "there")
    module = type(written).from_pretrained(tmp_path / "there")
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(1.5)
    student = from_module(module)
    module.save_pretrained(tmp_path / "there")  # the weights of the module, not those it was loaded with
    expected = load(str(tmp_path / "there"))
    for name, tensor in expected.state_dict().items():
        assert torch.equal(tensor, student.state_dict()[name]), name
    written.config._name_or_path = ""
    written.name_or_path = ""
    with pytest.raises(UserError, match="processor"):
        from_module(written)


def test_a_module_of_open_clip_without_the_name_of_its_config_is_refused() -> None:
    with pytest.raises(UserError, match=r"give model=\(module, its name\)"):
        from_module(load("tiny-28", seed=0).clip)


def test_a_share_to_keep_is_checked_before_training(arrays: tuple[np.ndarray, np.ndarray]) -> None:
    with pytest.raises(UserError, match="between 0 and 1"):
        tracer.finetune(arrays, classes=NAMES, model="tiny-28", pretrained="none", keep=97)


def test_a_share_that_no_mixture_keeps_names_the_finished_run(
    arrays: tuple[np.ndarray, np.ndarray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Scores, "retention", lambda self, before: 0.5)
    with pytest.raises(UserError, match=r"no mixture .* finished, in .*kept") as error:
        tracer.finetune(
            arrays,
            classes=NAMES,
            model="tiny-28",
            pretrained="none",
            keep=0.9,
            out=tmp_path / "kept",
            **SETTINGS,
        )
    assert "--keep" in str(error.value)
    assert Run.open(tmp_path / "kept").finished


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [("learning_rate", "lr"), ("batch_size", "batch"), ("num_epochs", "epochs"), ("num_workers", "workers")],
)
def test_names_of_other_libraries_lead_to_those_here(theirs: str, ours: str) -> None:
    settings: dict[str, Any] = {theirs: 1}
    with pytest.raises(UserError, match=rf"did you mean {ours}\?"):
        tracer.finetune("digits", model="tiny-28", **settings)


def test_options_of_merge_are_numbers_or_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="did you mean wise"):
        tracer.merge(tmp_path, wiser=0.5)
    with pytest.raises(UserError, match="is not a run"):
        tracer.merge(tmp_path, paint=0.5)


def test_every_public_name_can_be_had() -> None:
    assert set(tracer.__all__) <= set(dir(tracer))
    for name in tracer.__all__:
        assert getattr(tracer, name) is not None
    with pytest.raises(AttributeError, match="finetun"):
        tracer.finetun  # noqa: B018
