"""Images alone, in any form, are the same images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import TensorDataset

from tracer.core.errors import UserError
from tracer.data.formats.memory import from_object
from tracer.data.images import images_of

PIXELS = np.random.default_rng(0).integers(2, 256, (2, 6, 5, 3), np.uint8)
CHANNELS_FIRST = torch.from_numpy(PIXELS).permute(0, 3, 1, 2)


class Pairs:
    """A data set of torch, of images with labels."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> tuple[Image.Image, int]:
        return Image.fromarray(PIXELS[index]), index


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number, place in enumerate(("b", "a/deep")):
        (tmp_path / "photos" / place).mkdir(parents=True)
        Image.fromarray(PIXELS[1 - number]).save(tmp_path / "photos" / place / f"{1 - number}.PNG")
    (tmp_path / "photos" / "notes.txt").write_text("no image")
    (tmp_path / "table.csv").write_text("image,label\nphotos/a/deep/0.PNG,x\nphotos/b/1.PNG,y\n")
    np.savez(tmp_path / "both.npz", images=PIXELS, labels=np.array(["x", "y"]))
    return tmp_path


def forms(folder: Path) -> dict[str, Any]:
    files = [folder / "photos" / "a" / "deep" / "0.PNG", folder / "photos" / "b" / "1.PNG"]
    return {
        "folder": folder / "photos",
        "name of a folder": str(folder / "photos"),
        "table": str(folder / "table.csv"),
        "archive": folder / "both.npz",
        "paths": files,
        "names": tuple(map(str, files)),
        "generator": (file for file in files),
        "images": [Image.fromarray(each) for each in PIXELS],
        "arrays": list(PIXELS),
        "array": PIXELS,
        "float array": PIXELS.astype(np.float32) / 255,
        "tensor": CHANNELS_FIRST,
        "float tensor": CHANNELS_FIRST / 255,
        "tensors": list(CHANNELS_FIRST),
        "mapping": {"image": PIXELS, "label": [0, 1]},
        "with labels": (PIXELS, [0, 1]),
        "list with labels": ([*PIXELS], ["x", "y"]),
        "pairs": [(file, "a caption") for file in files],
        "torch": Pairs(),
        "torch tensors": TensorDataset(CHANNELS_FIRST, torch.tensor([0, 1])),
        "examples": from_object((PIXELS, ["x", "y"]), ("x", "y")),
    }


@pytest.mark.parametrize("form", forms(Path()))
def test_every_form_holds_the_same_images(form: str, folder: Path) -> None:
    found = images_of(forms(folder)[form])
    assert len(found) == len(set(found.ids)) == 2
    for number in range(2):
        assert np.array_equal(np.asarray(found.images[number]), PIXELS[number])


SINGLE = {
    "path": lambda folder: folder / "photos" / "a" / "deep" / "0.PNG",
    "image": lambda folder: Image.fromarray(PIXELS[0]),
    "array": lambda folder: PIXELS[0],
    "float array": lambda folder: PIXELS[0] / 255,
    "with alpha": lambda folder: np.dstack([PIXELS[0], np.full((6, 5), 255, np.uint8)]),
    "tensor": lambda folder: CHANNELS_FIRST[0],
    "float tensor": lambda folder: CHANNELS_FIRST[0] / 255,
}


@pytest.mark.parametrize("form", SINGLE)
def test_one_image_is_one(form: str, folder: Path) -> None:
    found = images_of(SINGLE[form](folder))
    assert len(found) == 1
    assert np.array_equal(np.asarray(found.images[0]), PIXELS[0])


def test_one_grey_image_is_one() -> None:
    for grey in (
        PIXELS[0, ..., 0],
        torch.from_numpy(PIXELS[0, ..., 0]),
        torch.from_numpy(PIXELS[:1, ..., 0]),
    ):
        found = images_of(grey)
        assert len(found) == 1
        assert np.array_equal(np.asarray(found.images[0])[..., 2], PIXELS[0, ..., 0])


def test_images_of_hugging_face_need_no_label() -> None:
    datasets = pytest.importorskip("datasets")
    column = datasets.Features({"photo": datasets.Image()})
    data = datasets.Dataset.from_dict({"photo": [Image.fromarray(each) for each in PIXELS]}, features=column)
    assert np.array_equal(np.asarray(images_of(data).images[1]), PIXELS[1])
    with pytest.raises(UserError, match="one split"):
        images_of(datasets.DatasetDict({"train": data}))


def test_nothing_is_no_image() -> None:
    assert len(images_of([])) == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "cannot be a NoneType"),
        (3, "cannot be a int"),
        ({"picture": PIXELS}, "cannot be a dict"),
        (np.zeros((3, 8, 8), np.uint8), "3 × 8 × 8 may be one image or three"),
        (torch.randn(2, 3, 4, 4) - 9, "between 0 and 1"),
        ("nowhere/", "no file or folder nowhere/"),
    ],
)
def test_what_is_no_image_is_a_sentence(given: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        images_of(given)
