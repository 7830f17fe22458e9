"""Data given from Python: every accepted form gives the same examples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset

from tracer.core.errors import UserError
from tracer.data.formats.memory import from_object, register, registered

PIXELS = np.random.default_rng(0).integers(0, 256, (4, 6, 5, 3), np.uint8)
LABELS = [1, 0, 1, 1]
NAMES = ["cat", "dog"]


class Pairs(Dataset):
    """A map-style torch data set."""

    def __init__(self, images: list[object], targets: list[object], classes: list[str] | None = None) -> None:
        self.images, self.targets = images, targets
        if classes:
            self.classes = classes

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[object, object]:
        return self.images[index], self.targets[index]


def forms(folder: Path) -> dict[str, object]:
    pictures = [Image.fromarray(each) for each in PIXELS]
    paths = []
    for number, picture in enumerate(pictures):
        paths.append(folder / f"{number}.png")
        picture.save(paths[-1])
    uint8 = [torch.from_numpy(each).permute(2, 0, 1) for each in PIXELS]
    return {
        "arrays": (PIXELS, np.array(LABELS)),
        "tensors": (torch.from_numpy(PIXELS), torch.tensor(LABELS)),
        "tensors with channels first": (torch.stack(uint8), torch.tensor(LABELS)),
        "floats with channels first": {"image": torch.stack(uint8) / 255, "label": LABELS},
        "pairs": list(zip(pictures, LABELS, strict=True)),
        "names": list(zip(pictures, [NAMES[label] for label in LABELS], strict=True)),
        "torch dataset": Pairs(uint8, LABELS),
        "floats": Pairs([each / 255 for each in uint8], LABELS),
        "paths": {"image": paths, "label": LABELS},
        "mapping": {"images": list(PIXELS), "labels": [NAMES[label] for label in LABELS]},
    }


def test_every_form_gives_the_same_examples(tmp_path: Path) -> None:
    read = {form: from_object(data, NAMES) for form, data in forms(tmp_path).items()}
    for form, examples in read.items():
        assert examples.classes == ("cat", "dog"), form
        assert examples.labels.tolist() == LABELS, form
        assert all(np.array_equal(np.asarray(examples.images[i]), PIXELS[i]) for i in range(4)), form
    assert len({examples.fingerprint for examples in read.values()}) == 1


def test_a_hugging_face_data_set() -> None:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=NAMES)})
    pictures = [Image.fromarray(each) for each in PIXELS]
    table = datasets.Dataset.from_dict({"image": pictures, "label": LABELS}, features=features)
    examples = from_object(table)
    assert examples.classes == ("cat", "dog")
    assert examples.labels.tolist() == LABELS
    assert np.array_equal(np.asarray(examples.images[2]), PIXELS[2])
    both = from_object(datasets.DatasetDict({"train": table, "test": table.select([0])}))
    assert len(both) == 4


def test_strings_are_captions_unless_there_are_classes() -> None:
    captions = ["a cat asleep", "a dog", "a dog", "two dogs"]
    examples = from_object(Pairs(list(PIXELS), captions))
    assert [texts for (texts,) in examples.captions] == captions
    assert not examples.labelled
    named = from_object(Pairs(list(PIXELS), [NAMES[label] for label in LABELS], classes=NAMES))
    assert named.labels.tolist() == LABELS
    assert not named.captioned


def test_other_pixels_are_other_data() -> None:
    changed = PIXELS.copy()
    changed[3, 5, 4, 2] ^= 1
    assert register((PIXELS, LABELS), NAMES) != register((changed, LABELS), NAMES)
    name = register((PIXELS, LABELS), NAMES)
    assert name == register((PIXELS.copy(), LABELS), NAMES)
    assert registered(name).labels.tolist() == LABELS


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ((PIXELS, LABELS), "labels are numbers"),
        ((PIXELS, LABELS[:3]), "differ in number"),
        ({"image": PIXELS}, "neither labels nor captions"),
        ({"picture": PIXELS}, "unknown key 'picture'"),
        (3, "cannot be a int"),
        ([], "hold no images"),
        ((PIXELS[:0], []), "hold no images"),
        ([1, 2], "an element of these data is a int"),
        ([(PIXELS[0].astype(np.float64), "a cat")], "an image cannot be a float64"),
        ([(torch.randn(3, 8, 8), "a cat")], "before they are normalised"),
        ((torch.randn(2, 3, 8, 8), ["a", "b"]), "before they are normalised"),
        ([("missing.png", "a cat")], "missing.png"),
    ],
)
def test_what_cannot_be_read_is_named(data: object, problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        from_object(data)


def test_the_folder_of_a_link_is_its_class_and_not_that_of_its_target(tmp_path):
    """As in a view of other data by links: the folders of the targets have names of their own."""
    paths = []
    for number, name in enumerate(("cat", "dog")):
        for folder in (f"store/n0{number}", name):
            (tmp_path / folder).mkdir(parents=True)
        target = tmp_path / f"store/n0{number}" / "1.png"
        Image.new("RGB", (4, 4), (number, 0, 0)).save(target)
        (tmp_path / name / "1.png").symlink_to(target)
        paths.append(tmp_path / name / ".." / name / "1.png")
    assert from_object(paths).classes == ("cat", "dog")


def test_bytes_of_0_and_1_are_refused_because_they_are_black():
    images = np.eye(4, dtype=np.uint8)[None].repeat(2, axis=0)
    for pixels in (images, torch.from_numpy(images)):
        with pytest.raises(UserError, match="values are 0 and 1, black to the eye: multiply them by 255"):
            from_object((pixels, ["cat", "dog"]))
    assert len(from_object((255 * images, ["cat", "dog"]))) == 2
