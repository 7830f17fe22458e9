"""What can be refused is refused before the first step, in a sentence, and leaves no run folder behind."""

from __future__ import annotations

import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from PIL import Image
from stopping import prepare, training

from studies.faults.process import join_pair, run_command
from tracer.api.run import divisible, one_first, run
from tracer.cli.app import main
from tracer.core.errors import UserError
from tracer.models.student import Student
from tracer.parallel import World
from tracer.runs.experiment import Experiment
from tracer.runs.plan import plan
from tracer.runs.run import Run
from tracer.training.setup import check_trainable


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Images in two classes, the same without labels, broken ones, and a table of images with captions."""
    prepare(tmp_path)
    for name in ("unlabelled", "broken/dark", "broken/bright"):
        (tmp_path / name).mkdir(parents=True)
    images = sorted((tmp_path / "photos").rglob("*.png"))
    for image in images:
        Image.open(image).save(tmp_path / "unlabelled" / f"{image.parent.name}-{image.name}")
        (tmp_path / "broken" / image.parent.name / image.name).write_bytes(b"no image")
    rows = [f"{image},a photo number {i}" for i, image in enumerate(images[:5])]
    (tmp_path / "pairs.csv").write_text("\n".join(["image,caption", *rows, ""]))
    (tmp_path / "images.csv").write_text("\n".join(["image", *map(str, images), ""]))
    return tmp_path


def refused(capsys: pytest.CaptureFixture[str], place: Path, *arguments: str) -> str:
    """The sentence with which a command ends that leaves nothing behind."""
    command = training(place, "run", 0)
    method = [arguments[0]] if arguments and not arguments[0].startswith("-") else []
    capsys.readouterr()
    assert main([command[0], *method, *command[1:], *arguments[len(method) :]]) == 2
    assert not (place / "run").exists()
    return " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("flag", ["--retain", "--held-out"])
@pytest.mark.parametrize("data", ["unlabelled", "broken", "images.csv"])
def test_data_that_cannot_be_scored(
    capsys: pytest.CaptureFixture[str], place: Path, flag: str, data: str
) -> None:
    assert data in refused(capsys, place, flag, str(place / data))


def test_captions_cannot_be_retained_because_nothing_is_named(
    capsys: pytest.CaptureFixture[str], place: Path
) -> None:
    assert "pairs.csv has no labels" in refused(capsys, place, "--retain", str(place / "pairs.csv"))


def test_captions_cannot_be_held_out_of_data_with_labels(
    capsys: pytest.CaptureFixture[str], place: Path
) -> None:
    message = refused(capsys, place, "--held-out", str(place / "pairs.csv"))
    assert "pairs.csv has no labels, and accuracy is measured over the 2 classes" in message


def test_labels_cannot_be_held_out_of_data_with_captions(
    capsys: pytest.CaptureFixture[str], place: Path
) -> None:
    message = refused(capsys, place, "--data", str(place / "pairs.csv"), "--batch", "2")
    assert "photos has no captions, and the training data have nothing else" in message


@pytest.mark.parametrize(("images", "share"), [(12, 0), (1, None)])
def test_a_run_without_a_held_out_image(
    capsys: pytest.CaptureFixture[str], place: Path, images: int, share: float | None
) -> None:
    """Its result would be a number over no image."""
    for image in (place / "photos").rglob("*.png"):
        if int(image.stem) >= images:
            image.unlink()
    flags = [] if share is None else ["--held-out-share", str(share)]
    small = ["--model", str(place / "minute.json"), "--pretrained", "none", "--steps", "2"]
    assert main(["train", "--data", str(place / "photos"), *small, *flags, "--out", str(place / "run")]) == 2
    message = " ".join(capsys.readouterr().err.split())
    assert "nothing is held out" in message
    assert "--held-out DATA" in message
    assert not (place / "run").exists()
    if share is None:
        assert main(["check", str(place / "photos")]) == 0
        assert "nothing is held out" in " ".join(capsys.readouterr().out.split())


def test_anchors_that_cannot_be_read(capsys: pytest.CaptureFixture[str], place: Path) -> None:
    (place / "pairs.csv").write_text(f"image,caption\n{place / 'broken/dark/0.png'},a photo\n")
    assert "0.png" in refused(capsys, place, "arf", "--anchors", str(place / "pairs.csv"))


@pytest.mark.parametrize("name", ["ftp", "spd"])
def test_a_regularizer_with_nothing_to_act_on(
    capsys: pytest.CaptureFixture[str], place: Path, name: str
) -> None:
    message = refused(capsys, place, "lp", "--regularizer", name, "--decay", "0")
    assert f"--regularizer {name} acts on pretrained weights and method lp trains only a head" in message


def test_a_regularizer_that_acts_on_one_of_two_stages(place: Path) -> None:
    arguments = training(place, "run", 0)
    assert main(["train", "lpft", *arguments[1:], "--regularizer", "ftp", "--decay", "0"]) == 0


def test_a_model_without_its_tokenizer(capsys: pytest.CaptureFixture[str], place: Path) -> None:
    folder = place / "model"
    folder.mkdir()
    config = json.loads((place / "minute.json").read_text())
    config["text_cfg"]["hf_tokenizer_name"] = "bert-base-uncased"
    (folder / "open_clip_config.json").write_text(json.dumps({"model_cfg": config, "preprocess_cfg": {}}))
    assert "model" in refused(capsys, place, "--model", str(folder), "--pretrained", "auto")


@pytest.mark.parametrize("method", ["flyp", "lpft"])
def test_memory_that_a_model_does_not_let_save(
    capsys: pytest.CaptureFixture[str], place: Path, method: str
) -> None:
    resnet = [method, "--model", "tiny-rn-32"]
    assert "open_clip cannot recompute the image tower" in refused(capsys, place, *resnet, "--checkpointing")
    assert "Use --batchnorm keep" in refused(capsys, place, *resnet, "--chunk", "4")
    command = training(place, "run", 0)
    kept = ["--model", "tiny-rn-32", "--chunk", "4", "--batchnorm", "keep", "--steps", "2"]
    assert main(["train", method, *command[1:], *kept]) == 0


def test_a_checked_model_is_as_it_was(place: Path) -> None:
    settled = plan(
        Experiment(
            data=str(place / "photos"),
            model=str(place / "minute.json"),
            pretrained="none",
            batch=8,
            steps=2,
            chunk=4,
            checkpointing=True,
        )
    )
    model = settled.experiment.pretrained_model()
    before = _switches(model)
    check_trainable(settled, model)
    assert _switches(model) == before


def _switches(model: Student) -> list[dict[str, bool]]:
    """What is on or off in each module, such as train mode and checkpointing."""
    return [{name: on for name, on in vars(each).items() if isinstance(on, bool)} for each in model.modules()]


def test_anchor_pairs_that_do_not_divide_among_processes(place: Path) -> None:
    settled = plan(
        Experiment(
            method="arf",
            options={"anchors": str(place / "pairs.csv")},
            data=str(place / "photos"),
            model=str(place / "minute.json"),
            pretrained="none",
            batch=8,
            steps=2,
        )
    )
    world = World("cpu", "fp32")
    assert divisible(settled, world) is settled
    world.size = 2
    with pytest.raises(UserError, match=r"5 anchor pairs.* do not divide among 2 processes: leave out 1"):
        divisible(settled, world)


def test_too_few_pairs_to_distil(capsys: pytest.CaptureFixture[str], place: Path) -> None:
    message = refused(capsys, place, "tracer", "--distill-pairs", "8")
    assert "a process has 8 pairs of each batch, and needs a multiple of 8, at least 16" in message
    assert "use --batch 16 or a larger multiple of 8" in message


def test_a_port_that_is_taken(place: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run_command(training(place, "run", 0), inject=lambda: join_pair(0, port))
    assert done.code == 2
    assert f"127.0.0.1:{port} is taken by another program" in done.output
    assert "Traceback" not in done.output
    assert not (place / "run").exists()


def test_a_resumed_run_says_what_is_different(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = Experiment(
        method="flyp",
        data=str(place / "photos"),
        model=str(place / "minute.json"),
        pretrained="none",
        templates="name",
        batch=8,
        steps=2,
    )
    settled = plan(experiment)
    machine = {**World("cpu", "fp32").describe(), "threads": 64, "instructions": "AVX9"}
    Run.create(settled, place / "run", machine=machine)
    with pytest.warns(
        UserWarning,
        match=r"this run began with instructions AVX9, now .*; threads 64, now 1: .* may differ in the last bits",
    ):
        run(experiment, place / "run")
    assert Run.open(place / "run").description["machine"]["processes"] == 1


def test_of_several_processes_one_reads_the_images_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACER_CACHE", str(tmp_path))
    world, asked, spans = World("cpu", "fp32"), Experiment(data="digits"), []
    monkeypatch.setattr(World, "size", 3)

    def read() -> None:
        with one_first(asked, world):
            begun = time.monotonic()
            time.sleep(0.1)
            spans.append((begun, time.monotonic()))

    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(read) for _ in range(3)]:
            done.result()
    first, *others = sorted(spans)
    assert all(begun >= first[1] for begun, _ in others)
    assert max(begun for begun, _ in others) < min(end for _, end in others)  # the others at the same time


def test_an_error_of_the_disk_while_planning_is_raised(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRACER_CACHE", str(tmp_path))
    monkeypatch.setattr(World, "size", 2)
    with (
        pytest.raises(OSError, match="broken"),
        one_first(Experiment(data="digits"), World("cpu", "fp32")),
    ):
        raise OSError(5, "broken")
