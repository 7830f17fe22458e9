"""Packing keeps order, labels and captions; pixels are exact or close, depending on the options."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tracer.cli.commands.pack import main
from tracer.core.errors import UserError
from tracer.data.encoded import content
from tracer.data.pack import pack
from tracer.data.scan import scan
from tracer.data.sources import load
from tracer.data.transforms import Transform
from tracer.models.open_clip_compat import open_clip


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for kind in ("red_car", "dog"):
        (tmp_path / "photos" / kind).mkdir(parents=True)
        for number, size in enumerate([(90, 61), (64, 100), (20, 24)]):
            noise = Image.fromarray(rng.integers(256, size=(8, 8, 3), dtype=np.uint8))
            image = noise.resize(size, Image.Resampling.BICUBIC)
            image.save(tmp_path / "photos" / kind / f"{number}.jpg", quality=95)
    return tmp_path / "photos"


def evaluation(size: int) -> Transform:
    return Transform(asdict(open_clip.transform.PreprocessCfg(size=size)))


def test_labels_order_and_sizes_survive(photos: Path, tmp_path: Path) -> None:
    original = load(photos)
    reports: list[tuple[int, int]] = []
    pack(original, tmp_path / "small.tar", side=32, progress=lambda *counts: reports.append(counts))
    assert reports == [(number, 6) for number in range(1, 7)]
    packed = load(tmp_path / "small.tar")
    assert [packed.classes[i] for i in packed.labels] == [original.classes[i] for i in original.labels]
    assert [min(packed.images[i].size) for i in range(6)] == [32, 32, 20] * 2
    assert content(packed.images, 2) == content(original.images, 2)  # too small to shrink: byte for byte


def test_without_loss_and_at_the_model_s_size_evaluation_sees_the_same_pixels(
    photos: Path, tmp_path: Path
) -> None:
    original = load(photos)
    pack(original, tmp_path / "exact.tar", side=32, lossless=True)
    packed = load(tmp_path / "exact.tar")
    pixels = [evaluation(32).batch(each.images, range(6)) for each in (original, packed)]
    assert torch.equal(*pixels)


def test_with_jpeg_they_differ_by_a_few_levels(photos: Path, tmp_path: Path) -> None:
    original = load(photos)
    pack(original, tmp_path / "small.tar", side=40)
    packed = load(tmp_path / "small.tar")
    one, other = (evaluation(32).batch(each.images, range(6)).float() for each in (original, packed))
    assert 0 < float((one - other).abs().mean()) < 4  # of 255, on noise that fills the small image


def test_captions_survive(tmp_path: Path, photos: Path) -> None:
    table = tmp_path / "pairs.csv"
    table.write_text(
        "image,caption\nphotos/dog/0.jpg,a dog, asleep\n".replace("a dog, asleep", '"a dog, asleep"')
    )
    pack(load(table), tmp_path / "pairs.tar")
    assert list(load(tmp_path / "pairs.tar").captions) == [("a dog, asleep",)]


def test_the_command_writes_what_training_reads_and_overwrites_nothing(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "packed" / "photos.tar"
    assert main([str(photos), "--out", str(out), "--side", "32"]) == 0
    assert len(load(out)) == 6
    with pytest.raises(UserError, match="already there"):
        main([str(photos), "--out", str(out)])
    with pytest.raises(UserError, match=r"use --out .*photos\.tar"):
        main([str(photos), "--out", str(out.with_suffix(".zip"))])
    assert [each.name for each in out.parent.iterdir()] == ["photos.tar"]  # nothing half written beside it


def test_the_command_says_which_splits_it_leaves_out(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    divided = tmp_path / "divided"
    for split in ("train", "val", "test"):
        (divided / split).parent.mkdir(exist_ok=True)
        (divided / split).symlink_to(photos)
    assert main([str(divided), "--out", str(tmp_path / "some.tar")]) == 0
    shown = capsys.readouterr().out
    assert "of the split train" in shown
    assert "Not packed: val, test." in shown
    assert main([str(photos), "--out", str(tmp_path / "all.tar")]) == 0
    assert "Not packed" not in capsys.readouterr().out


def test_file_names_that_are_not_utf8_are_packed_and_such_classes_refused(
    photos: Path, tmp_path: Path
) -> None:
    """Files of old archives: a name is only a name, but a class stands in prompts and in the run's description."""
    folder = next(each for each in sorted(photos.iterdir()) if each.is_dir())
    first = next(each for each in sorted(folder.iterdir()) if each.suffix != ".txt")
    odd = os.fsdecode(b"caf\xe9")
    first.rename(first.with_name(odd + first.suffix))
    examples = load(str(photos))
    pack(examples, tmp_path / "packed.tar")
    assert list(load(str(tmp_path / "packed.tar")).labels) == list(examples.labels)
    folder.rename(photos / odd)
    with pytest.raises(UserError, match=r"the class 'caf\\udce9' of .* is not UTF-8: rename its folder"):
        scan(load(str(photos)))
