"""The first three commands of `docs/own-data.md`, on a table of five hundred rows."""

from __future__ import annotations

import csv
import re
import shlex
from pathlib import Path

import pytest
from kept import estimates, predictions

from tracer.cli.app import main
from tracer.data.embedded.digits import digits
from tracer.data.formats.idx import Split
from tracer.data.sources import load

PAGE = Path(__file__).parents[2] / "docs" / "own-data.md"
SMALL = "--model tiny-28 --pretrained none --steps 2 --batch 32 --workers 0 --device cpu"


def table(path: Path, split: Split, rows: int) -> None:
    examples = digits(split)
    images = path.parent / split
    images.mkdir()
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["filepath", "label"])
        for i in range(rows):
            examples.images[i].save(images / f"{i}.png")
            writer.writerow([f"{split}/{i}.png", f"digit_{examples.classes[examples.labels[i]]}"])


def test_check_train_and_eval_as_the_page_says(tmp_path, monkeypatch, capsys):
    lines = PAGE.read_text(encoding="utf-8").split("```sh\n")[1].split("```")[0].splitlines()
    assert [line.split()[:2] for line in lines] == [["tracer", name] for name in ("check", "train", "eval")]
    table(tmp_path / "photos.csv", "train", 500)
    table(tmp_path / "test.csv", "test", 60)
    monkeypatch.chdir(tmp_path)
    for line in lines:
        arguments = shlex.split(line)[1:]
        small = shlex.split(SMALL) if arguments[0] == "train" else []
        assert main([*arguments, *small]) == 0
        output = capsys.readouterr().out
        if arguments[0] == "check":
            assert "train with  tracer train --data photos.csv" in output
            assert "10; images in each:" in output
        if arguments[0] == "eval":
            check_eval(tmp_path / "runs" / "photos" / "predictions", output)
    assert (tmp_path / "runs" / "photos" / "experiment.json").is_file()


def check_eval(folder, output):
    """The printed table, the stored rows and the predictions agree."""
    before, after = (
        {metric: each for (data, metric), each in estimates(folder / name).items() if data == "test.csv"}
        for name in ("pretrained", "result")
    )
    found = predictions(folder / "result", "test.csv")
    hits = (found.logits.argmax(1) == found.label).sum().item()
    assert found.logits.shape == (60, 10)
    assert after["accuracy"].value == pytest.approx(hits / 60)
    assert {row.n for row in (*before.values(), *after.values())} == {60}
    head, _, accuracy, *_ = output.splitlines()
    assert head.split() == ["runs/photos", "before", "runs/photos", "images"]
    shown = [f"{100 * rows['accuracy'].value:.2f}" for rows in (before, after)]
    assert re.fullmatch(rf"test.csv, accuracy ↑ +{shown[0]} \[.+\] +{shown[1]} \[.+\] +60", accuracy)
    assert "test.csv: all 10 classes, by class names" in output


@pytest.mark.parametrize("variant", ["", ":coloured", ":colour", ":group", ":flipped"])
def test_embedded_names_on_the_page_exist(variant):
    assert f"`digits{variant}`" in PAGE.read_text(encoding="utf-8").replace("--data ", "")
    assert len(load(f"digits{variant}", split="test")) == 2000
