"""ObjectNet's own files decide which ImageNet classes count, whatever their order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from replicas import OVERLAP, objectnet, save

from tracer.core.errors import UserError
from tracer.evaluation.suites.objectnet import FILES, examples, mapping


@pytest.fixture
def root(tmp_path: Path) -> Path:
    objectnet(tmp_path)
    return tmp_path


def edit(path: Path, change) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def test_columns_are_resolved_through_the_shuffled_file_of_names(root: Path) -> None:
    found = mapping(root)
    assert found.folders == tuple(OVERLAP)
    assert found.columns == tuple(OVERLAP.values())
    assert found.elsewhere == {"only_here"}


def test_classes_outside_the_overlap_are_left_out(root: Path) -> None:
    assert {path.partition("/")[0] for path in examples(root, mapping(root)).ids} == {
        "thing_000",
        "thing_001",
        "thing_112",
    }


@pytest.mark.parametrize("name", FILES)
def test_every_file_is_needed(root: Path, name: str) -> None:
    (root / "mappings" / name).unlink()
    with pytest.raises(UserError, match=name):
        mapping(root)


def test_a_folder_that_the_files_do_not_know_is_refused(root: Path) -> None:
    save(root / "images/thing_01/1.png", (0, 0, 0))
    with pytest.raises(UserError, match=r"unknown class of ObjectNet .* 'thing_01'"):
        examples(root, mapping(root))


def test_a_mapping_of_another_size_is_refused(root: Path) -> None:
    edit(root / "mappings" / FILES[1], lambda overlap: overlap.pop("Thing 005"))
    with pytest.raises(UserError, match="112 overlapping classes, not 113"):
        mapping(root)


def test_a_name_that_imagenet_lacks_is_refused(root: Path) -> None:
    edit(root / "mappings" / FILES[1], lambda overlap: overlap.update({"Thing 005": "unicorn"}))
    with pytest.raises(UserError, match="'unicorn'"):
        mapping(root)


def test_broken_json_is_told(root: Path) -> None:
    (root / "mappings" / FILES[0]).write_text("{")
    with pytest.raises(UserError, match="is not JSON"):
        mapping(root)
