"""Test images that are nearly the same as training images: resized, re-encoded or retouched copies."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from tracer.data.encoded import draft
from tracer.data.examples import Examples

SIDE = 16  # pixels of the grey thumbnails that are compared
DECODED = 64  # pixels of a JPEG before it is made that small; fewer would show how it was decoded
NEAR = 3.0  # of 255 grey levels: root mean square difference of two thumbnails of one picture
FLAT = 8.0  # standard deviation below which a thumbnail shows too little to be recognised
MOST = 5_000  # images of a test set that are compared, evenly spaced
BLOCK = 20_000  # training images at a time, to bound memory


def near_duplicates(train: Examples, others: Examples) -> tuple[tuple[str, str], ...]:
    """Pairs of a training image and one of `others` that is nearly the same, at most one for each of the others."""
    rows = np.unique(np.linspace(0, len(others) - 1, min(MOST, len(others))).astype(int))
    if not len(rows) or not len(train):
        return ()
    own = thumbnails(others.take(rows)).astype(np.float32)
    recognisable = own.std(axis=1) >= FLAT
    nearest, distance = np.zeros(len(rows), int), np.full(len(rows), np.inf)
    for start in range(0, len(train), BLOCK):
        block = np.arange(start, min(start + BLOCK, len(train)))
        squares = _mean_squares(own, thumbnails(train.take(block)).astype(np.float32))
        closer = squares.min(axis=1) < distance
        nearest[closer] = block[squares.argmin(axis=1)[closer]]
        distance = np.minimum(distance, squares.min(axis=1))
    copies = np.flatnonzero(recognisable & (distance <= NEAR**2))
    return tuple((train.ids[int(nearest[i])], others.ids[int(rows[i])]) for i in copies)


def thumbnails(examples: Examples) -> UInt8[np.ndarray, "n 256"]:
    """A grey thumbnail of every image."""

    def thumbnail(index: int) -> np.ndarray:
        image = draft(examples.images, index, (DECODED, DECODED)).image.convert("L")
        return np.asarray(image.resize((SIDE, SIDE), Image.Resampling.BOX), np.uint8).reshape(-1)

    with ThreadPoolExecutor() as pool:
        return np.stack([*pool.map(thumbnail, range(len(examples)))])


def _mean_squares(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The mean squared difference of every row of `first` to every row of `second`."""
    cross = first @ second.T
    squares = (first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1)[None, :] - 2 * cross
    return np.maximum(squares, 0) / first.shape[1]
