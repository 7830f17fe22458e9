"""Replicas of all six layouts: labels, masks, the max rule, counts, and refusal of partial copies."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from posting import posted
from replicas import (
    OF_A,
    OF_R,
    ON_DISK,
    OVERLAP,
    SIZES,
    SKETCH,
    VAL,
    A,
    R,
    build,
    known_logits,
    png,
    save,
    shards,
)

from tracer.core.errors import UserError
from tracer.evaluation.suites.imagenet import SETS, check, imagenet
from tracer.evaluation.suites.shift import Suite
from tracer.evaluation.suites.synsets import synsets


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("replicas"))


@pytest.fixture
def root(copies: Path, tmp_path: Path) -> Path:
    """A copy of the replicas that a test may spoil."""
    return Path(shutil.copytree(copies, tmp_path / "root"))


def miniature(
    root: Path, only: Iterable[str] = SETS, at: Iterable[str] = (), sizes: Mapping[str, int] = SIZES
) -> Suite:
    """Some sets of the suite, complete with so many images."""
    suite = imagenet(root, at)
    shifts = dict(zip(SETS, suite, strict=True))
    return replace(suite, shifts=tuple(replace(shifts[key], size=sizes[key]) for key in only))


TRUTH = {
    "ImageNet": [i for i in VAL for _ in range(2)],
    "ImageNet-V2": [i for i in (0, 10, 2, 999) for _ in range(2)],  # folders in order of spelling
    "ImageNet-R": [R.index(i) for i in OF_R for _ in range(2)],
    "ImageNet-A": [A.index(i) for i in OF_A for _ in range(2)],
    "ImageNet-Sketch": [i for i in SKETCH for _ in range(2)],
    "ObjectNet": [list(OVERLAP).index(folder) for folder in ON_DISK for _ in range(2)],
}


def test_labels_and_counts(copies: Path) -> None:
    opened = miniature(copies).open()
    assert {each.shift.name: each.examples.labels.tolist() for each in opened} == TRUTH
    assert not any(each.partial for each in opened)


def test_roles_and_averages(copies: Path) -> None:
    suite = miniature(copies)
    assert [shift.name for shift in suite.of("id")] == ["ImageNet"]
    assert [len(average.members) for average in suite.averages] == [5, 4]
    assert "ObjectNet" in suite.averages[0].members
    assert "ObjectNet" not in suite.averages[1].members
    few = miniature(copies, ("val", "v2", "r"))
    assert [average.members for average in few.averages] == [("ImageNet-V2", "ImageNet-R")]


def test_class_names_belong_to_the_images(copies: Path) -> None:
    from tracer.models.open_clip_compat import open_clip

    names = open_clip.IMAGENET_CLASSNAMES
    for shift, examples, _ in miniature(copies).open():
        assert shift.classes == tuple(names)
        assert len(shift.templates) == 80
        for path, label in zip(examples.ids, examples.labels, strict=True):
            folder = path.partition("/")[0]
            if shift.name == "ObjectNet":
                assert examples.classes[label] == folder.replace("_", " ").title()
            else:
                index = int(folder) if folder.isdecimal() else synsets().index(folder)
                assert examples.classes[label] == names[index]


def test_logits_of_known_weights(copies: Path) -> None:
    """The projected logits of every set, worked out one by one from the thousand."""
    by_hand = {
        "ImageNet-R": lambda row: [row[i] for i in R],
        "ImageNet-A": lambda row: [row[i] for i in A],
        "ObjectNet": lambda row: [max(row[i] for i in columns) for columns in OVERLAP.values()],
    }
    for shift, examples, _ in miniature(copies).open():
        logits = known_logits(examples)
        expected = [by_hand.get(shift.name, list)(row.tolist()) for row in logits]
        assert shift.project(logits).tolist() == expected
        assert shift.project(logits).shape[1] == len(examples.classes)


def test_the_true_class_survives_every_projection(copies: Path) -> None:
    """A model that knows the answer scores 100 %, so labels and columns are in the same order."""
    columns = {"ImageNet-R": R, "ImageNet-A": A, "ObjectNet": [group[-1] for group in OVERLAP.values()]}
    for shift, examples, _ in miniature(copies).open():
        own = columns.get(shift.name, range(1000))
        logits = torch.zeros(len(examples), 1000)
        for row, label in enumerate(examples.labels):
            logits[row, own[label]] = 1
        assert shift.project(logits).argmax(dim=1).tolist() == examples.labels.tolist()


def test_the_border_of_objectnet_is_gone(copies: Path) -> None:
    ((_, examples, _),) = miniature(copies, ("objectnet",)).open()
    assert examples.images[0].size == (12, 10)
    assert (255, 0, 0) not in {pixel for _, pixel in examples.images[0].getcolors() or ()}


def test_rules_are_said(copies: Path) -> None:
    rules = [shift.rule for shift in miniature(copies)]
    assert "ImageNet-R: logits restricted to 200 of 1000 classes" in rules
    assert any(rule.startswith("ObjectNet: 113 classes, each the largest logit") for rule in rules)


def test_partial_copies_are_refused_all_at_once(copies: Path) -> None:
    with pytest.raises(UserError) as refusal:
        imagenet(copies).open()
    for chosen in SETS.values():
        assert f"{chosen.name} has " in str(refusal.value)
        assert str(chosen.size) in str(refusal.value)
    assert "--allow-partial" in str(refusal.value)


def test_one_image_too_few_or_too_many_is_partial(root: Path) -> None:
    save(root / f"imagenet-a/{synsets()[A[0]]}/new.jpg", (1, 2, 3))
    next((root / "sketch" / synsets()[3]).iterdir()).unlink()
    with pytest.raises(UserError, match=r"ImageNet-A has 5 .* 4\nImageNet-Sketch has 3 .* 4"):
        miniature(root).open()
    marked = {each.shift.name: each.partial for each in miniature(root).open(allow_partial=True)}
    assert [name for name, partial in marked.items() if partial] == ["ImageNet-A", "ImageNet-Sketch"]


def test_an_absent_set_is_refused_or_left_out(root: Path) -> None:
    shutil.rmtree(root / "objectnet-1.0")
    with pytest.raises(UserError, match=r"ObjectNet is not in .* get it from https://objectnet.dev"):
        miniature(root).open()
    opened = miniature(root).open(allow_partial=True)
    assert [each.shift.name for each in opened] == [each.name for each in SETS.values()][:5]


def test_nothing_at_all_is_refused_even_as_partial(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not complete"):
        imagenet(tmp_path).open(allow_partial=True)
    with pytest.raises(UserError, match="not a folder"):
        imagenet(tmp_path / "nowhere")


def test_check_tells_what_is_there_and_where_to_get_the_rest(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(root / "imagenet-a")
    monkeypatch.setitem(SETS, "r", replace(SETS["r"], size=6))
    lines = check(root)
    assert len(lines) == 6
    assert lines[2].startswith("✓ ImageNet-R: 6 images in ")
    assert lines[3].startswith("✗ ImageNet-A is not in ")
    assert lines[3].endswith("https://github.com/hendrycks/natural-adv-examples")
    assert lines[0].startswith("✗ ImageNet: 6 of 50000 images")
    (root / "objectnet-1.0/mappings/imagenet_to_label_2012_v2").unlink()
    assert "imagenet_to_label_2012_v2 is missing" in check(root)[5]


def test_folders_of_other_classes_are_refused(root: Path) -> None:
    other = synsets()[next(i for i in range(1000) if i not in R)]
    save(root / f"imagenet-r/{other}/1.jpg", (0, 0, 0))
    with pytest.raises(UserError, match=f"unknown class of ImageNet-R '{other}'"):
        miniature(root, ("r",)).open()
    save(root / "imagenetv2-matched-frequency-format-val/1000/1.jpeg", (0, 0, 0))
    with pytest.raises(UserError, match="unknown class of ImageNet-V2 '1000'"):
        miniature(root, ("v2",)).open(allow_partial=True)


def test_empty_folders_are_refused(tmp_path: Path) -> None:
    (tmp_path / "imagenet-r" / synsets()[R[0]]).mkdir(parents=True)
    with pytest.raises(UserError, match="no image in them"):
        miniature(tmp_path, ("r",)).open()
    (tmp_path / "val").mkdir()
    with pytest.raises(UserError, match="holds no images"):
        miniature(tmp_path, ("val",)).open()


def test_flat_validation_images_with_their_table(tmp_path: Path) -> None:
    folder = tmp_path / "ILSVRC/Data/CLS-LOC/val"
    for number in range(len(VAL)):
        save(folder / f"ILSVRC2012_val_{number:08d}.JPEG", (number, 0, 0))
    with pytest.raises(UserError, match=r"LOC_val_solution\.csv"):
        miniature(tmp_path, ("val",), sizes={"val": 3}).open()
    rows = [f"ILSVRC2012_val_{n:08d},{synsets()[i]} 1 2 3 4 " for n, i in reversed(list(enumerate(VAL)))]
    (tmp_path / "LOC_val_solution.csv").write_text("\n".join(["ImageId,PredictionString", *rows]))
    ((_, examples, _),) = miniature(tmp_path, ("val",), sizes={"val": 3}).open()
    assert examples.labels.tolist() == list(VAL)
    save(folder / "stray.JPEG", (0, 0, 0))
    with pytest.raises(UserError, match=r"nothing about 1 images, for example stray.JPEG"):
        miniature(tmp_path, ("val",), sizes={"val": 3}).open()


def test_shards_give_the_same_logits_as_folders(tmp_path: Path) -> None:
    shades = [(i % 256, 3, 5) for i in range(200)]
    shards(tmp_path / "wds_imagenet-r", [(png(shade), "png", str(i)) for i, shade in enumerate(shades)])
    for i, shade in enumerate(shades):
        path = tmp_path / "folders" / "imagenet-r" / synsets()[R[i]] / "1.png"
        path.parent.mkdir(parents=True)
        path.write_bytes(png(shade))
    ((shift, sharded, _),) = miniature(tmp_path, ("r",), sizes={"r": 200}).open()
    ((_, foldered, _),) = miniature(tmp_path / "folders", ("r",), sizes={"r": 200}).open()
    assert sharded.labels.tolist() == foldered.labels.tolist() == list(range(200))
    assert torch.equal(shift.project(known_logits(sharded)), shift.project(known_logits(foldered)))


@pytest.mark.parametrize("write", [str, lambda index: synsets()[index]])
def test_shards_may_count_in_imagenet_or_write_its_ids(tmp_path: Path, write) -> None:
    shards(tmp_path / "wds_imagenet-a", [(png((9, 9, 9)), "png", write(i)) for i in (A[5], A[-1])])
    ((_, examples, _),) = miniature(tmp_path, ("a",), sizes={"a": 2}).open()
    assert examples.labels.tolist() == [5, 199]


def test_numbers_that_could_mean_two_things_are_refused(tmp_path: Path) -> None:
    shards(tmp_path / "wds_imagenet-a", [(png((9, 9, 9)), "png", str(i)) for i in (6, 11)])
    with pytest.raises(UserError, match="write WordNet ids"):
        miniature(tmp_path, ("a",), sizes={"a": 2}).open()


def test_objectnet_shards_need_the_mapping_beside_them(copies: Path, tmp_path: Path) -> None:
    folder = tmp_path / "wds_objectnet"
    shards(folder, [(png((9, 9, 9)), "png", str(i)) for i in (0, 112)])
    with pytest.raises(UserError, match=r"mappings/folder_to_objectnet_label.json"):
        miniature(tmp_path, ("objectnet",), sizes={"objectnet": 2}).open()
    shutil.copytree(copies / "objectnet-1.0/mappings", folder / "mappings")
    ((_, examples, _),) = miniature(tmp_path, ("objectnet",), sizes={"objectnet": 2}).open()
    assert examples.labels.tolist() == [0, 112]
    assert examples.images[0].size == (2, 2)


def test_a_set_may_lie_elsewhere(root: Path, tmp_path: Path) -> None:
    (root / "imagenet-r").rename(tmp_path / "paintings")
    ((_, examples, _),) = miniature(root, ("r",), at=(f"r={tmp_path / 'paintings'}",)).open()
    assert examples.labels.tolist() == TRUTH["ImageNet-R"]


def test_unknown_sets_are_told(copies: Path) -> None:
    with pytest.raises(UserError, match="did you mean sketch"):
        imagenet(copies, at=("val=here", "sketches=there"))


def test_examples_can_be_sent_to_workers(copies: Path) -> None:
    for _, examples, _ in miniature(copies).open():
        there = posted(examples)
        assert torch.equal(known_logits(there), known_logits(examples))
