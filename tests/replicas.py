"""Miniature copies of the six ImageNet test sets, in the layouts in which they are distributed."""

from __future__ import annotations

import json
import random
import tarfile
from io import BytesIO
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from tracer.data.examples import Examples
from tracer.evaluation.suites.synsets import lemmas, subset, synsets

R, A = subset("r"), subset("a")

# What each replica holds: ImageNet indices, two images of each.
VAL, V2, SKETCH = (0, 7, 999), (0, 2, 10, 999), (3, 500)
OF_R, OF_A = (R[0], R[10], R[-1]), (A[3], A[-1])
SIZES = {"val": 6, "v2": 8, "r": 6, "a": 4, "sketch": 4, "objectnet": 6}

WEIGHTS = torch.from_numpy(np.random.default_rng(0).normal(size=(1000, 3)))


def colour(*key: object) -> tuple[int, int, int]:
    """The one colour of a replica's image."""
    dice = random.Random(repr(key))
    return dice.randrange(256), dice.randrange(256), dice.randrange(256)


def save(path: Path, shade: tuple[int, int, int]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    format = "PNG" if path.suffix == ".png" else "JPEG"
    Image.new("RGB", (12, 10), shade).save(path, format, **({} if format == "PNG" else {"quality": 100}))


def known_logits(examples: Examples) -> Tensor:
    """A model with known weights: logit k is the scalar product of w_k with the image's mean colour."""
    means = [np.asarray(examples.images[i], np.float64).mean(axis=(0, 1)) / 255 for i in range(len(examples))]
    return torch.from_numpy(np.stack(means)) @ WEIGHTS.T


def build(root: Path) -> Path:
    """All six below `root`."""
    for index in VAL:
        for i in (1, 2):
            save(root / f"val/{synsets()[index]}/ILSVRC2012_val_{index:07d}{i}.JPEG", colour("val", index, i))
    for index in V2:
        for i in (1, 2):
            save(root / f"imagenetv2-matched-frequency-format-val/{index}/{i}ab.jpeg", colour("v2", index, i))
    for folder, indices in (("imagenet-r", OF_R), ("imagenet-a", OF_A), ("sketch", SKETCH)):
        for index in indices:
            for i in (1, 2):
                save(root / f"{folder}/{synsets()[index]}/{i}.jpg", colour(folder, index, i))
        (root / folder / "README.txt").write_text("not an image")
    objectnet(root / "objectnet-1.0")
    return root


# Every overlapping ObjectNet class has one ImageNet class, but the first has three and the second two.
OVERLAP = {f"thing_{i:03d}": (i * 8,) for i in range(113)} | {
    "thing_000": (5, 900, 17),
    "thing_001": (8, 801),
}
ON_DISK = ("thing_000", "thing_001", "thing_112")


def objectnet(root: Path) -> None:
    for folder in (*ON_DISK, "only_here"):
        for i in (1, 2):
            save(root / f"images/{folder}/{i}.png", colour(folder, i))
            bordered(root / f"images/{folder}/{i}.png")
    label = {folder: folder.replace("_", " ").title() for folder in (*OVERLAP, "only_here")}
    line = list(range(1000))
    random.Random(0).shuffle(line)  # ImageNet's class i is on line[i] of the file of names
    names = [""] * 1000
    for index in range(1000):
        names[line[index]] = lemmas()[index]
    write(root, "folder_to_objectnet_label.json", json.dumps(label))
    overlap = {label[folder]: "; ".join(lemmas()[i] for i in OVERLAP[folder]) for folder in OVERLAP}
    write(root, "objectnet_to_imagenet_1k.json", json.dumps(overlap))
    write(root, "pytorch_to_imagenet_2012_id.json", json.dumps({str(i): line[i] for i in range(1000)}))
    write(root, "imagenet_to_label_2012_v2", "\n".join(names) + "\n")


def bordered(path: Path) -> None:
    """Put the red border around an image that the data set has."""
    with Image.open(path) as inner:
        framed = Image.new("RGB", (inner.width + 4, inner.height + 4), "red")
        framed.paste(inner, (2, 2))
    framed.save(path)


def write(root: Path, name: str, text: str) -> None:
    (root / "mappings").mkdir(parents=True, exist_ok=True)
    (root / "mappings" / name).write_text(text)


def shards(folder: Path, samples: list[tuple[bytes, str, str]]) -> None:
    """Two tar shards of (image, ending, label), as the hub has them: `test/0.tar`, `test/1.tar`."""
    (folder / "test").mkdir(parents=True)
    half = (len(samples) + 1) // 2
    for shard in (0, 1):
        with tarfile.open(folder / "test" / f"{shard}.tar", "w") as tar:
            for number, (image, ending, label) in list(enumerate(samples))[shard * half : (shard + 1) * half]:
                for name, content in (
                    (f"s{number:07d}.{ending}", image),
                    (f"s{number:07d}.cls", label.encode()),
                ):
                    member = tarfile.TarInfo(name)
                    member.size = len(content)
                    tar.addfile(member, BytesIO(content))


def png(shade: tuple[int, int, int]) -> bytes:
    stored = BytesIO()
    Image.new("RGB", (6, 6), shade).save(stored, "PNG")
    return stored.getvalue()
