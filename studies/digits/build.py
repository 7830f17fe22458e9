"""Build `tracer/data/embedded/digits.npz` from MNIST's idx files: `python -m studies.digits.build FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import get_args

import numpy as np

from tracer.data.formats.idx import Split, arrays

PER_DIGIT: dict[Split, int] = {"train": 1000, "test": 200}
TARGET = Path(__file__).parents[2] / "tracer" / "data" / "embedded" / "digits.npz"


def balanced(labels: np.ndarray, per_digit: int) -> np.ndarray:
    """Indices of `per_digit` examples of each digit, evenly spaced over the file, in its order.

    Even spacing matters: the second half of MNIST's test file is harder than the first.
    """
    members = [np.flatnonzero(labels == digit) for digit in range(10)]
    return np.sort(np.concatenate([each[np.arange(per_digit) * len(each) // per_digit] for each in members]))


def build(folder: Path, target: Path = TARGET) -> None:
    """Write the balanced subset of both splits."""
    stored = {}
    for split in get_args(Split):
        grey, labels = arrays(folder, split)
        chosen = balanced(labels, PER_DIGIT[split])
        stored |= {f"{split}_images": grey[chosen], f"{split}_labels": labels[chosen]}
    np.savez_compressed(target, **stored)


if __name__ == "__main__":
    build(Path(sys.argv[1]))
    print(f"{TARGET}: {TARGET.stat().st_size:,} bytes")
