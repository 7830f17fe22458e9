"""WILDS through its own package; here a stand-in with the same interface."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from kept import estimates
from PIL import Image

from tracer.cli.app import main
from tracer.core.errors import UserError
from tracer.evaluation.suites.wilds import fmow, iwildcam


def stand_in(monkeypatch: pytest.MonkeyPatch, folder: Path, classes: int) -> None:
    """Six images: two to train on, one to validate on, one ID test, two OOD test."""
    dataset = SimpleNamespace(
        data_dir=folder,
        n_classes=classes,
        split_dict={"train": 0, "val": 1, "test": 2, "id_val": 3, "id_test": 4},
        split_array=np.array([0, 2, 4, 0, 1, 2]),
        y_array=np.array([0, 1, 2, 0, 1, 0]),
        get_input=lambda index: Image.new("L", (3, 3), 10 * index),
    )
    module, fmow_module = ModuleType("wilds"), ModuleType("wilds.datasets.fmow_dataset")

    def get_dataset(name: str, root_dir: str, download: bool) -> SimpleNamespace:
        if root_dir.endswith("empty"):
            raise FileNotFoundError("The dataset could not be found")
        assert name in ("iwildcam", "fmow")
        assert download is False
        return dataset

    module.__dict__["get_dataset"] = get_dataset
    fmow_module.__dict__["categories"] = ["airport", "crop_field", "zoo"]
    monkeypatch.setitem(sys.modules, "wilds", module)
    monkeypatch.setitem(sys.modules, "wilds.datasets", ModuleType("wilds.datasets"))
    monkeypatch.setitem(sys.modules, "wilds.datasets.fmow_dataset", fmow_module)


def test_iwildcam(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    table = "y,category_id,name\n1,5,panthera_onca\n0,3,empty\n99999,8,unseen\n2,9,cervus\n"
    (tmp_path / "categories.csv").write_text(table)
    stand_in(monkeypatch, tmp_path, classes=3)
    suite = iwildcam(tmp_path)
    assert [(shift.name, shift.role, shift.metric) for shift in suite] == [
        ("iWildCam id_test", "id", "macro_f1"),
        ("iWildCam test", "ood", "macro_f1"),
    ]
    inside, outside = suite.open()
    assert inside.shift.classes == ("empty", "panthera onca", "cervus")
    assert inside.examples.labels.tolist() == [2]
    assert outside.examples.labels.tolist() == [1, 0]
    image = outside.examples.images[1]
    assert (image.mode, image.getpixel((0, 0))) == ("RGB", (50, 50, 50))


def test_the_authors_measure_is_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "categories.csv").write_text("y,category_id,name\n0,3,empty\n1,5,panthera_onca\n2,9,cervus\n")
    stand_in(monkeypatch, tmp_path, classes=3)
    asked = ["eval", "tiny-28", "--pretrained", "none", "--suite", "iwildcam", "--root", str(tmp_path)]
    assert main([*asked, "--device", "cpu", "--format", "json", "--out", str(tmp_path / "out")]) == 0
    tables = {table["metric"]: table for table in json.loads(capsys.readouterr().out)}
    assert list(tables)[:2] == ["accuracy", "macro_f1"]
    found = estimates(tmp_path / "out")
    f1 = {name: [each.value] for (name, metric), each in found.items() if metric == "macro_f1"}
    assert {name: cell["values"] for name, cell in tables["macro_f1"]["rows"][0][1].items()} == f1
    assert f1.keys() == {"iWildCam id_test", "iWildCam test"}


def test_fmow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stand_in(monkeypatch, tmp_path, classes=3)
    suite = fmow(tmp_path)
    assert suite.shifts[0].classes == ("airport", "crop field", "zoo")
    assert [len(each.examples) for each in suite.open()] == [1, 2]


def test_what_is_missing_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "wilds", None)
    with pytest.raises(UserError, match="pip install wilds"):
        fmow(tmp_path)
    stand_in(monkeypatch, tmp_path, classes=3)
    with pytest.raises(UserError, match=r"categories.csv"):
        iwildcam(tmp_path)
    with pytest.raises(UserError, match="download=True"):
        fmow(tmp_path / "empty")
    stand_in(monkeypatch, tmp_path, classes=62)
    with pytest.raises(UserError, match="62 classes and 3 names"):
        fmow(tmp_path)
