"""Own data with a role: any data that can be trained on can be tested on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tracer.core.errors import UserError
from tracer.evaluation.suites.own import own, with_role


def folders(root: Path, *splits: str, images: int = 2) -> Path:
    for split in splits or ("",):
        for name in ("red_fox", "owl"):
            (root / split / name).mkdir(parents=True)
            for i in range(images):
                Image.new("RGB", (4, 4), (i, 0, 0)).save(root / split / name / f"{split}{i}.png")
    return root


def test_a_folder_as_a_shift(tmp_path: Path) -> None:
    shift = own(folders(tmp_path / "night"), "retain")
    assert (shift.name, shift.role, shift.classes) == ("night", "retain", ("owl", "red fox"))
    examples = shift.load()
    logits = np.eye(2)[examples.labels]
    assert examples.labels.tolist() == [0, 0, 1, 1]
    assert shift.rule == "night: all 2 classes"
    assert len(shift.templates) == 80
    assert logits.shape == (4, len(shift.classes))


def test_labels_count_in_the_classes_given(tmp_path: Path) -> None:
    shift = own(folders(tmp_path), classes=("red fox", "hare", "owl"))
    assert shift.load().labels.tolist() == [2, 2, 0, 0]
    assert shift.classes == ("red fox", "hare", "owl")


def test_the_test_split_is_the_one_to_test_on(tmp_path: Path) -> None:
    folders(tmp_path, "train", "val", "test")
    assert {path.split("/")[0] for path in own(tmp_path).load().ids} == {"test"}
    assert {path.split("/")[0] for path in own(tmp_path, split="val").load().ids} == {"val"}
    only = folders(tmp_path / "other", "train", "val")
    assert {path.split("/")[0] for path in own(only).load().ids} == {"val"}


def test_embedded_data_bring_their_prompts() -> None:
    shift = own("digits", "id")
    assert shift.load().splits == ("train", "test")
    assert len(shift.templates) < 80
    assert own("digits", "id", prompts="a photo of {}.").templates == ("a photo of {}.",)


@pytest.mark.parametrize("wrong", ["photos", "ood=", ""])
def test_a_role_is_needed(wrong: str) -> None:
    with pytest.raises(UserError, match="role=data"):
        with_role(wrong)
    assert with_role("ood=a=b") == ("ood", "a=b")


def test_unknown_roles_are_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="did you mean retain"):
        with_role(f"retains={tmp_path}")


def test_data_without_labels_cannot_be_scored(tmp_path: Path) -> None:
    Image.new("RGB", (4, 4)).save(tmp_path / "a.png")
    with pytest.raises(UserError, match="neither labels nor captions"):
        own(tmp_path)
