"""`tracer eval RUN --data …`: scored over the classes of the run, by its head, and the output says so."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from closeness import same
from kept import estimates, predictions

from tracer.cli.app import main
from tracer.data.embedded.digits import digits
from tracer.data.formats.idx import Split
from tracer.data.sources import load
from tracer.data.transforms import Transform
from tracer.measure.answers import Estimate, Predictions, Store
from tracer.runs.run import Run

NAMES = ("zero", "one", "two", "three")
CPU = ["--device", "cpu"]
LENGTH = 5139  # `closeness.length` of tiny-28


def table(
    folder: Path, split: Split, kinds: tuple[int, ...], each: int = 5, columns: str = "filepath,label"
) -> Path:
    """A CSV of some digits, labelled in words."""
    examples = digits(split)
    lines = [columns]
    for kind in kinds:
        for i in np.flatnonzero(examples.labels == kind)[:each]:
            examples.images[int(i)].save(folder / f"{split}{i}.png")
            lines.append(f"{split}{i}.png,{NAMES[kind]}")
    path = folder / f"{split}-{''.join(map(str, kinds))}-{columns.replace(',', '-')}.csv"
    path.write_text("\n".join(lines))
    return path


@pytest.fixture(scope="module")
def ft(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of ft over four digits."""
    folder = tmp_path_factory.mktemp("ft")
    data = table(folder, "train", (0, 1, 2, 3), each=12)
    small = ["--model", "tiny-28", "--pretrained", "none", "--steps", "12", "--batch", "8", "--lr", "1e-3"]
    asked = ["train", "ft", "--data", str(data), *small, "--workers", "0", *CPU]
    assert main([*asked, "--out", str(folder / "run")]) == 0
    return folder / "run"


def measured(out: Path, *asked: str) -> Predictions:
    assert main(["eval", *asked, "--templates", "name", *CPU, "--out", str(out)]) == 0
    return predictions(out)


def test_fewer_classes_in_the_data_do_not_make_the_task_easier(
    ft: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    every = measured(tmp_path / "all", str(ft), "--data", str(table(tmp_path, "test", (0, 1, 2, 3))))
    some = measured(tmp_path / "some", str(ft), "--data", str(table(tmp_path, "test", (1, 3))))
    assert "all 4 classes, by its trained head" in capsys.readouterr().out
    chosen = torch.tensor([place for place, each in enumerate(every.ids) if each in some.ids])
    same(some.logits, every.logits[chosen], LENGTH)
    assert some.label.tolist() == every.label[chosen].tolist()
    order = json.loads((ft / "experiment.json").read_text())["classes"]
    assert {order[label] for label in some.label} == {"one", "three"}
    rules = {each.rule.partition(": ")[2] for each in estimates(tmp_path / "some").values()}
    assert rules == {"all 4 classes, by its trained head"}


def test_the_trained_head_is_what_scored(ft: Path, tmp_path: Path) -> None:
    data = table(tmp_path, "test", (2, 0))
    found = measured(tmp_path / "out", str(ft), "--data", str(data))
    student = Run.open(ft).student().eval()
    pixels = Transform(student.preprocess_cfg).batch(load(data).images, range(2))
    with torch.no_grad():
        same(found.logits[:2], student.classify(student.encode_image(pixels)), LENGTH)


def test_other_classes_are_told_and_scored_by_their_names(
    ft: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = table(tmp_path, "test", (0, 1))
    data.write_text(data.read_text().replace(",zero", ",zebra"))
    assert measured(tmp_path / "out", str(ft), "--data", str(data)).logits.shape[1] == 2
    said = capsys.readouterr()
    assert "has classes the run was not trained on, such as 'zebra': scored over its own 2" in said.err
    assert "all 2 classes, by class names" in said.out


def test_what_is_to_be_retained_keeps_its_own_classes(ft: Path, tmp_path: Path) -> None:
    data = table(tmp_path, "test", (0, 1))
    assert measured(tmp_path / "out", str(ft), "--data", f"retain={data}").logits.shape[1] == 2


def test_a_list_of_classes_on_the_command_line_comes_first(ft: Path, tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("one\nten\nthree\n")
    data = table(tmp_path, "test", (1, 3))
    asked = [str(ft), "--data", str(data), "--classes", str(tmp_path / "names.txt")]
    assert measured(tmp_path / "out", *asked).logits.shape[1] == 3


def test_what_is_printed_is_one_document(
    ft: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["eval", str(ft), "--data", str(table(tmp_path, "test", (0, 1))), "--templates", "name", *CPU]
    asked += ["--weights", "result", "--out", str(tmp_path / "out"), "--format"]
    capsys.readouterr()
    assert main([*asked, "json"]) == 0
    tables = json.loads(capsys.readouterr().out)
    assert [each["metric"] for each in tables] == ["accuracy", "ece", "ece_batched"]
    rows = {metric: each.value for (_, metric), each in estimates(tmp_path / "out").items()}
    assert main([*asked, "csv"]) == 0
    lines = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    for shown in tables:
        (name, cells), *_ = shown["rows"]
        ((place, one),) = cells.items()
        assert one["values"] == [rows[shown["metric"]]]
        (line,) = [line for line in lines if (line["model"], line["metric"]) == (name, shown["metric"])]
        assert (line["column"], float(line["value"])) == (place, rows[shown["metric"]])
    assert len(lines) == len(tables), "one line a number, and the head once"


def test_a_run_is_shown_before_and_after(
    ft: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["eval", str(ft), "--data", str(table(tmp_path, "test", (0, 1))), "--templates", "name", *CPU]
    assert main([*asked, "--format", "json", "--out", str(tmp_path / "both")]) == 0
    told = capsys.readouterr()
    first, *_, last = json.loads(told.out)
    assert [name for name, _ in first["rows"]] == [f"{ft} before", str(ft)]
    assert [note.partition(" test-")[2].partition(": ")[2] for note in last["notes"]] == [
        "all 4 classes, by class names",
        "all 4 classes, by its trained head",
    ]
    both = [estimates(tmp_path / kept) for kept in ("both/pretrained", "both")]
    assert both[0] != both[1]
    for weights, kept in zip(("pretrained", "result"), both, strict=True):
        assert main([*asked, "--weights", weights, "--out", str(tmp_path / weights)]) == 0
        assert estimates(tmp_path / weights) == kept


def test_nothing_is_written_for_a_model_without_a_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = table(tmp_path, "test", (0, 1))
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.iterdir())
    asked = ["eval", "tiny-28", "--pretrained", "none", "--data", data.name, "--templates", "name", *CPU]
    assert main(asked) == 0
    assert "nothing is written: --out" in capsys.readouterr().err
    assert set(tmp_path.iterdir()) == before


def test_columns_can_be_told(ft: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = table(tmp_path, "test", (0, 1), columns="where,what")
    assert main(["eval", str(ft), "--data", str(data), *CPU]) == 2
    assert "--image-column" in capsys.readouterr().err
    told = ["--image-column", "where", "--label-column", "what", "--separator", ","]
    found = measured(tmp_path / "out", str(ft), "--data", str(data), *told)
    usual = measured(tmp_path / "usual", str(ft), "--data", str(table(tmp_path, "test", (0, 1))))
    same(found.logits, usual.logits, LENGTH)
    assert main(["eval", str(ft), "--suite", "emojishift", "--label-column", "what", *CPU]) == 2
    assert "--label-column means nothing for a suite" in capsys.readouterr().err


def test_columns_are_those_of_the_run_unless_told(
    some_digits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = ["--image-column", "where", "--label-column", "what", "--templates", "the digit {}"]
    data = table(tmp_path, "train", (0, 1), columns="where,what")
    run = tmp_path / "run"
    asked = ["--model", "tiny-28", "--pretrained", "none", "--steps", "1", "--batch", "4", "--workers", "0"]
    assert main(["train", "flyp", "--data", str(data), *told, *asked, *CPU, "--out", str(run)]) == 0
    test = table(tmp_path, "test", (0, 1), columns="where,what")
    assert main(["eval", str(run), "--data", str(test), *CPU]) == 0
    assert (
        "read as the run read its data: --image-column where --label-column what" in capsys.readouterr().err
    )
    found = predictions(run / "predictions" / "result", test.name)
    asked = ["eval", str(run), "--data", str(test), *CPU, "--templates", "the digit {}"]
    assert main([*asked, "--out", str(tmp_path / "same")]) == 0
    again = predictions(tmp_path / "same", test.name)
    same(found.logits, again.logits, LENGTH)
    assert main(["eval", str(run), "--data", str(table(tmp_path, "test", (0, 1))), *CPU]) == 2
    assert main(["eval", str(run), "--data", str(some_digits), *CPU]) == 0, (
        "a run's columns are no reason to refuse an archive"
    )


def test_another_set_joins_the_others_and_the_same_set_is_replaced(
    ft: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, pair = tmp_path / "out", [table(tmp_path, "test", kinds) for kinds in ((0, 1), (2, 3))]
    asked = ["--templates", "name", "--weights", "result", *CPU, "--out", str(out)]

    def scored(data: Path) -> dict[tuple[str, str], Estimate]:
        assert main(["eval", str(ft), "--data", str(data), *asked]) == 0
        return estimates(out)

    first, both = scored(pair[0]), scored(pair[1])
    assert {asked: each for asked, each in both.items() if asked in first} == first
    assert {name for name, _ in both} == {each.name for each in pair}
    places = {each.name: each.source["data"] for each in Store(out).all()}
    assert places == {each.name: str(each) for each in pair}
    for file in out.glob("*.safetensors"):
        file.write_bytes(file.read_bytes()[:-20])
    capsys.readouterr()
    assert scored(pair[0]) == first, "what is cut short is read for no number"
