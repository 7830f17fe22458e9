"""`tracer eval RUN --data …`: scored over the classes of the run, by its head, and the output says so."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tracer.cli import main
from tracer.clip import open_clip
from tracer.data.digits import digits
from tracer.evaluate import Predictions
from tracer.run import Run

NAMES = ("zero", "one", "two", "three")
CPU = ["--device", "cpu"]


def table(
    folder: Path, split: str, kinds: tuple[int, ...], each: int = 5, columns: str = "filepath,label"
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
    """A finished run of ft over four digits; retention over few names, which is quicker."""
    folder = tmp_path_factory.mktemp("ft")
    data = table(folder, "train", (0, 1, 2, 3), each=12)
    small = ["--model", "tiny-28", "--pretrained", "none", "--steps", "12", "--batch", "8", "--lr", "1e-3"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(open_clip, "IMAGENET_CLASSNAMES", open_clip.IMAGENET_CLASSNAMES[:24])
        asked = ["train", "ft", "--data", str(data), *small, "--workers", "0", *CPU]
        assert main([*asked, "--out", str(folder / "run")]) == 0
    return folder / "run"


def measured(out: Path, *asked: str) -> Predictions:
    assert main(["eval", *asked, "--templates", "name", *CPU, "--out", str(out)]) == 0
    (file,) = out.glob("*.safetensors")
    return Predictions.read(file)


def test_fewer_classes_in_the_data_do_not_make_the_task_easier(
    ft: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    every = measured(tmp_path / "all", str(ft), "--data", str(table(tmp_path, "test", (0, 1, 2, 3))))
    some = measured(tmp_path / "some", str(ft), "--data", str(table(tmp_path, "test", (1, 3))))
    assert "all 4 classes, by its trained head" in capsys.readouterr().out
    chosen = torch.tensor([place for place, each in enumerate(every.ids) if each in some.ids])
    torch.testing.assert_close(some.logits, every.logits[chosen])
    assert some.label.tolist() == every.label[chosen].tolist()
    order = json.loads((ft / "experiment.json").read_text())["classes"]
    assert {order[label] for label in some.label} == {"one", "three"}
    rows = json.loads((tmp_path / "some" / "rows.json").read_text())
    assert {row["rule"].partition(": ")[2] for row in rows} == {"all 4 classes, by its trained head"}


def test_the_trained_head_is_what_scored(ft: Path, tmp_path: Path) -> None:
    found = measured(tmp_path / "out", str(ft), "--data", str(table(tmp_path, "test", (2, 0))))
    student = Run.open(ft).student().eval()
    from tracer.data.transforms import Transform

    with Image.open(tmp_path / found.ids[0]) as image:
        pixels = Transform(student.preprocess).batch([image.convert("RGB")], range(1))
    with torch.no_grad():
        torch.testing.assert_close(found.logits[:1], student.classify(student.encode_image(pixels)))


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
