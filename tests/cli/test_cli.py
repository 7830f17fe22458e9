"""The command as a user meets it: it works, or it is refused with a sentence and code 2 before any work."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

from tracer.cli.app import main
from tracer.cli.commands.demo import demo
from tracer.core.errors import UserError
from tracer.evaluation.measured import Measured
from tracer.models.open_clip_compat import open_clip
from tracer.report.run_data import read_run
from tracer.runs.run import Run

TINY = ["--model", "tiny-32", "--pretrained", "none", "--device", "cpu"]
SHORT = [*TINY, "--steps", "3", "--batch", "4"]


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's own folder: three classes, eight pictures each, of several sizes."""
    root = tmp_path_factory.mktemp("data") / "photos"
    rng = np.random.default_rng(0)
    for name in ("red fox", "blue_whale", "oak"):
        (root / name).mkdir(parents=True)
        for i in range(8):
            size = (int(rng.integers(30, 60)), int(rng.integers(30, 60)), 3)
            Image.fromarray(rng.integers(0, 255, size, dtype=np.uint8)).save(root / name / f"{i}.png")
    return root


@pytest.fixture(scope="module")
def trained(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    assert main(["train", "--data", str(photos), *SHORT, "--out", str(out)]) == 0
    return out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The message of a command that must be refused."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "1000")
        assert main(list(arguments)) == 2
    return capsys.readouterr().err


def test_help_is_an_overview_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(
        f"\n  {name}" in shown for name in ("train", "resume", "eval", "export", "list", "check", "demo")
    )
    assert "tracer train --data photos/" in shown


@pytest.mark.parametrize("command", ["train", "resume", "eval", "export", "list", "check", "demo", "theory"])
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    assert f"tracer {command}" in capsys.readouterr().out


def test_a_method_shows_its_own_flags(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train", "tracer", "--help-all"])
    shown = capsys.readouterr().out
    assert "--beta" in shown
    assert "shape of the Beta kernel" in shown


@pytest.mark.parametrize("what", ["methods", "models", "kernels"])
def test_lists(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", what]) == 0
    assert {"methods": "tracer", "models": "tiny-28", "kernels": "beta"}[what] in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["trian"], "unknown command 'trian': did you mean train"),
        (["train", "tracr"], "unknown method 'tracr': did you mean tracer"),
        (["train", "ft", "--tune=image"], "--tune is not an option of ft, but of carot"),
        (
            ["train", "--data", "digits", "--model", "ViT-B-61"],
            "no run or folder 'ViT-B-61', and no model of this name: did",
        ),
        (["train", "--data", "digits", "--pretrained", "opena"], "did you mean openai"),
        (["train", "--data", "digits", "--model", "tiny-28"], "tiny-28 has no OpenAI weights"),
        (["train", "--data", "digits", *TINY, "--lrr", "1"], "--lr"),
        (["train", "--data", "digitz", *TINY], "there is no file or folder digitz: did you mean digits"),
        (["train", "--data", "digits", *TINY, "--steps", "5", "--warmup", "5"], "warm-up of 5 steps"),
        (["train", "--data", "digits", *TINY, "--batch", "100000"], "batch 100000 is larger than the data"),
        (["train", "--data", "digits", *TINY, "--batch", "1"], "batch 1 is too small"),
        (["train", "--data", "digits", *TINY, "--epochs", "1", "--steps", "5"], "not both"),
        (["train", "tracer", "--data", "digits", *TINY, "--beta", "-1"], "Beta needs positive shapes"),
        (["train", "tracer", "--data", "digits", *TINY, "--every", "0"], "not every 0"),
        (["train", "--data", "digits", *TINY, "--templates", "no place"], "unknown template set"),
        (["train", "--data", "digits", *TINY, "--device", "abacus"], "device 'abacus'"),
        (["list", "methodz"], "unknown list 'methodz': did you mean methods"),
        (["eval", "tiny-28", "--pretrained", "none"], "either --data or --suite"),
        (["eval", "tiny-28", "--suite", "imagenot", "--root", "."], "did you mean imagenet"),
        (["resume", "nowhere"], "there is no run at nowhere"),
    ],
)
def test_bad_input_is_named_with_the_nearest_choice(
    arguments: list[str],
    says: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert says in refused(capsys, *arguments)
    assert not (tmp_path / "runs").exists(), "work started before the refusal"


@pytest.mark.parametrize(
    "command", [("export",), ("resume",), ("merge", "--wise", "0.5"), ("eval", "--data", "digits")]
)
def test_a_folder_of_runs_names_the_runs_in_it(
    command: tuple[str, ...], trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = refused(capsys, command[0], str(trained.parent), *command[1:])
    assert f"; give one of those in it: {trained}" in told


def test_an_unfinished_run_is_resumed_before_it_is_exported(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "half").mkdir()
    shutil.copy(trained / "experiment.json", tmp_path / "half")
    told = refused(capsys, "export", str(tmp_path / "half"))
    assert f"is not finished: go on with: tracer resume {shlex.quote(str(tmp_path / 'half'))}" in told


def test_zeroshot_ends_with_a_command_to_evaluate_it(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "zeroshot", "--data", str(photos), *TINY, "--out", str(tmp_path / "run")]) == 0
    shown = capsys.readouterr().out
    assert f"Next: tracer eval {shlex.quote(str(tmp_path / 'run'))} --data" in shown
    assert "longer" not in shown


def test_data_that_cannot_be_learnt_from(
    tmp_path: Path, photos: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = tmp_path / "one"
    shutil.copytree(photos / "oak", one / "oak")
    assert "one class only" in refused(capsys, "train", "--data", str(one), *SHORT)
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "empty" in refused(capsys, "train", "--data", str(empty), *SHORT)
    table = tmp_path / "pairs.csv"
    table.write_text(f"image,caption\n{photos / 'oak' / '0.png'},an oak\n{photos / 'oak' / '1.png'},\n")
    assert "empty caption" in refused(capsys, "train", "--data", str(table), *SHORT)
    assert "did you mean" in refused(
        capsys, "train", "--data", str(table), *SHORT, "--caption-column", "captoin"
    )


def test_ft_needs_labels(tmp_path: Path, photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "pairs.csv"
    rows = [f"{photos / 'oak' / f'{i}.png'},oak number {i}" for i in range(8)]
    table.write_text("\n".join(["image,caption", *rows]))
    assert "has no labels" in refused(capsys, "train", "ft", "--data", str(table), *SHORT)


def test_unreadable_images_are_named_and_skipped_or_refused(
    tmp_path: Path, photos: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    many = tmp_path / "many"
    for i in range(7):
        for folder in photos.iterdir():
            (many / folder.name).mkdir(parents=True, exist_ok=True)
            for file in folder.iterdir():
                shutil.copy(file, many / folder.name / f"{i}-{file.name}")
    broken = many / "oak" / "broken.png"
    broken.write_bytes((many / "oak" / "0-0.png").read_bytes()[:500])
    assert main(["check", str(many)]) == 0
    assert "broken.png" in capsys.readouterr().out
    assert "broken.png" in refused(capsys, "train", "--data", str(many), *SHORT, "--strict")
    for i in range(3):
        shutil.copy(broken, many / "oak" / f"broken{i}.png")
    assert "more than 1%" in refused(capsys, "train", "--data", str(many), *SHORT)


def test_a_users_folder_trains_and_the_export_loads_in_open_clip(trained: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    assert main(["export", str(trained), "--out", str(folder)]) == 0
    loaded = open_clip.create_model(f"local-dir:{folder}").eval()
    student = Run.open(trained).student().eval()
    image, text = (
        torch.randn(2, 3, 32, 32),
        open_clip.get_tokenizer(f"local-dir:{folder}")(["an oak", "a fox"]),
    )
    assert torch.equal(loaded.encode_image(image), student.clip.encode_image(image))
    assert torch.equal(loaded.encode_text(text), student.clip.encode_text(text))
    assert main(["eval", str(folder), "--data", "digits"]) == 0


def test_student_and_teacher_can_both_be_exported(trained: Path, tmp_path: Path) -> None:
    tensors = {}
    for name in ("student", "teacher"):
        assert main(["export", str(trained), "--weights", name, "--out", str(tmp_path / name)]) == 0
        tensors[name] = load_file(tmp_path / name / "open_clip_model.safetensors")
    assert tensors["student"].keys() == tensors["teacher"].keys()
    assert any(not tensors["student"][key].equal(tensors["teacher"][key]) for key in tensors["student"])


def test_a_run_directory_says_what_it_is(trained: Path) -> None:
    told = json.loads((trained / "experiment.json").read_text())
    assert told["experiment"]["seed"] == 0
    assert told["versions"]["torch"] == torch.__version__
    assert told["data"]["fingerprint"]
    assert told["classes"] == ["blue whale", "oak", "red fox"]
    result = json.loads((trained / "result.json").read_text())
    assert result["retention"] == {"meaningful": False}, "a random start names nothing"
    assert {"accuracy", "ece", "nll"} <= result["after"].keys()


def test_a_digit_changed_in_a_result_is_noticed(trained: Path, tmp_path: Path) -> None:
    run = shutil.copytree(trained, tmp_path / "run")
    told = json.loads((run / "result.json").read_text())
    assert Run.open(run).result == {name: value for name, value in told.items() if name != "digest"}
    told["after"]["accuracy"] = 1 - told["after"]["accuracy"] / 2
    (run / "result.json").write_text(json.dumps(told))
    with pytest.raises(UserError, match="does not match its digest"):
        Run.open(run).result  # noqa: B018
    assert any("does not match its digest" in note for note in read_run(run).notes)


def test_the_same_experiment_again_says_so(
    trained: Path, photos: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = ["train", "--data", str(photos), *SHORT, "--out", str(trained)]
    assert "it is finished" in refused(capsys, *again)
    assert "holds another experiment" in refused(capsys, *again, "--seed", "1")
    assert main(["resume", str(trained)]) == 0
    assert "nothing to resume" in capsys.readouterr().out


def test_without_out_the_run_is_named_by_its_hash(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", "zeroshot", "--data", str(photos), *SHORT]) == 0
    (run,) = (tmp_path / "runs").iterdir()
    assert run.name == json.loads((run / "experiment.json").read_text())["id"]


def test_dry_run_shows_and_does_nothing(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "--data", str(photos), *SHORT, "--out", str(tmp_path / "run"), "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert "trainable parameters" in shown
    assert "GiB" in shown
    assert not (tmp_path / "run").exists()


def test_a_loss_that_is_no_number_stops_the_run_and_names_step_and_term(
    trained: Path, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "broken"
    assert main(["export", str(trained), "--out", str(folder)]) == 0
    file = folder / "open_clip_model.safetensors"
    weights = load_file(file)
    weights["logit_scale"].fill_(1000.0)  # a number, but not its exponential
    save_file(weights, file)
    config = json.loads((folder / "open_clip_config.json").read_text())
    del config["weights_digest"]
    (folder / "open_clip_config.json").write_text(json.dumps(config))
    arguments = [
        "train",
        "flyp",
        "--data",
        str(photos),
        "--model",
        str(folder),
        "--steps",
        "3",
        "--batch",
        "4",
    ]
    arguments += ["--device", "cpu", "--out", str(tmp_path / "run")]
    assert "scores that are not finite: it is broken" in refused(capsys, *arguments)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "tracer.training.loop.measure_pretrained",
            lambda plan, *_: Measured(None, [True] * len(plan.held_out), {}, None),
        )
        message = refused(capsys, *arguments[:-1], str(tmp_path / "other"))
    assert "not finite at step 1" in message
    assert "contrastive" in message
    assert not (tmp_path / "other" / "result.json").exists()


def test_two_processes_cannot_share_a_run(
    trained: Path, photos: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    half = tmp_path / "half"
    shutil.copytree(trained, half)
    (half / "result.json").unlink()
    with Run.open(half).locked():
        assert "another process" in refused(capsys, "resume", str(half))


def test_the_first_bar_of_the_demo_says_what_it_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def first(experiment: object, out: Path, title: str) -> None:
        raise KeyboardInterrupt(title)

    monkeypatch.setattr("tracer.cli.commands.demo.run_with_progress", first)
    with pytest.raises(KeyboardInterrupt, match=r"pretraining \(1 of 5\)"):
        demo(tmp_path)
