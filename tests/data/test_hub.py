from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image
from posting import posted

from tracer.core.errors import UserError
from tracer.data.sources import load

datasets = pytest.importorskip("datasets")


@pytest.fixture(autouse=True)
def quiet(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    datasets.disable_progress_bars()


def png(shade: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (4, 3), (shade, 0, 0)).save(file, "PNG")
    return file.getvalue()


def part(labels: list[int], start: int = 0):
    features = datasets.Features(
        {
            "picture": datasets.Image(),
            "label": datasets.ClassLabel(names=["snowy_owl", "cat", "bee"]),
            "caption": datasets.List(datasets.Value("string")),
        }
    )
    rows = {
        "picture": [{"bytes": png(start + i), "path": None} for i in range(len(labels))],
        "label": labels,
        "caption": [[f"number {i}", f"{i}"] for i in range(len(labels))],
    }
    return datasets.Dataset.from_dict(rows, features=features)


def test_a_saved_data_set(tmp_path):
    parts = datasets.DatasetDict({"train": part([2, 0, 1]), "validation": part([1], start=100)})
    parts.save_to_disk(tmp_path / "saved")
    examples = load(f"hf:{tmp_path}/saved")
    assert examples.classes == ("snowy owl", "cat", "bee")  # in the data set's own order
    assert examples.labels.tolist() == [2, 0, 1]
    assert examples.captions[1] == ("number 1", "1")
    assert [np.asarray(examples.images[i])[0, 0, 0] for i in range(3)] == [0, 1, 2]
    assert examples.splits == ("train", "val")
    assert "image column: picture" in examples.detected
    for split in ("val", "test", "validation"):
        held_out = load(tmp_path / "saved", split=split)
        assert held_out.classes == examples.classes
        assert held_out.labels.tolist() == [1]
        assert np.asarray(held_out.images[0])[0, 0, 0] == 100


def test_class_names_can_be_given_and_columns_chosen(tmp_path):
    part([0, 1]).save_to_disk(tmp_path / "saved")
    names = {"cat": "a cat", "snowy_owl": "an owl"}
    examples = load(f"hf:{tmp_path}/saved", classes=names, caption="none", split="train")
    assert examples.classes == ("a cat", "an owl")
    assert examples.labels.tolist() == [1, 0]
    assert not examples.captioned
    with pytest.raises(UserError, match="unknown column 'lable'"):
        load(f"hf:{tmp_path}/saved", label="lable")
    with pytest.raises(UserError, match=r"column label of .* holds no images"):
        load(f"hf:{tmp_path}/saved", image="label")


def test_parquet_with_the_images_inside(tmp_path):
    part([0, 1]).to_parquet(tmp_path / "x.parquet")
    examples = load(f"hf:{tmp_path}/x.parquet")
    assert examples.labels.tolist() == [0, 1]
    assert np.asarray(posted(examples.images)[1])[0, 0, 0] == 1
    table = load(tmp_path / "x.parquet")
    assert [table.classes[i] for i in table.labels] == [examples.classes[i] for i in examples.labels]
    assert table.captions == examples.captions
    for i in range(2):
        assert (np.asarray(table.images[i]) == np.asarray(examples.images[i])).all()


def test_classes_of_one_name_are_not_merged(tmp_path):
    features = datasets.Features(
        {"image": datasets.Image(), "label": datasets.ClassLabel(names=["crane", "cat", "Crane"])}
    )
    rows = {"image": [{"bytes": png(i), "path": None} for i in range(3)], "label": [0, 1, 2]}
    datasets.Dataset.from_dict(rows, features).save_to_disk(tmp_path / "saved")
    with pytest.raises(UserError, match="two classes have one name, 'crane' and 'Crane'"):
        load(f"hf:{tmp_path}/saved")
    names = {"crane": "crane (bird)", "cat": "cat", "Crane": "crane (machine)"}
    assert load(f"hf:{tmp_path}/saved", classes=names).labels.tolist() == [0, 1, 2]


def test_what_is_not_there_is_named(tmp_path):
    with pytest.raises(UserError, match="data set 'no/such' cannot be loaded"):
        load("hf:no/such")
    with pytest.raises(UserError, match="cannot be loaded"):
        load(f"hf:{tmp_path}/nothing")
