"""Images that are there twice: byte by byte, or nearly: resized, re-encoded or retouched copies."""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from tracer.data.encoded import draft
from tracer.data.examples import Examples

SIDE = 16  # pixels of the thumbnails that are compared; in colour, since drawings may differ in nothing else
DECODED = 64  # pixels of a JPEG before it is made that small; fewer would show how it was decoded
NEAR = 3.0  # of 255 levels: root mean square difference in brightness of two thumbnails of one picture
NEAR_IN_COLOUR = 6.0  # that of red, green and blue, which JPEG stores at half the size
BRIGHTNESS = np.array([0.299, 0.587, 0.114], np.float32)  # of red, green and blue
FLAT = 8.0  # standard deviation of every colour below which a thumbnail shows too little to be recognised
MOST = 5_000  # images of a test set that are compared, evenly spaced
BLOCK = 20_000  # training images at a time, to bound memory


def duplicates(examples: Examples, *, contradicting: bool = False) -> list[list[str]]:
    """The ids of images that are the same, byte by byte, in groups; only those with different labels if asked for."""
    places: dict[bytes, list[int]] = defaultdict(list)
    for place, content in enumerate(_contents(examples)):
        places[content].append(place)
    least = 2 if contradicting else 1
    groups = [each for each in places.values() if len(each) > 1 and len(set(examples.labels[each])) >= least]
    return [[examples.ids[place] for place in group] for group in groups]


def trained_too(train: Examples, others: Examples, called: str) -> str:
    """How many of `others`, which are `called` so, are also in `train`, and one of them; empty if none is."""
    shared = shared_images(train, others)
    if not shared:
        return ""
    count = f"{len(shared)} of {len(others)} {called} are also trained on"
    return f"{count}, such as {others.ids[shared[0]]}"


def shared_images(first: Examples, others: Examples) -> list[int]:
    """Places in `others` of images that are also in `first`, byte by byte."""
    known = set(_contents(first))
    return [place for place, content in enumerate(_contents(others)) if content in known]


def _contents(examples: Examples) -> list[bytes]:
    """A hash of each image; none if they have not been read."""
    return [] if examples.contents is None else [row.tobytes() for row in examples.contents]


def near_duplicates(train: Examples, others: Examples) -> tuple[tuple[str, str], ...]:
    """Pairs of a training image and one of `others` that is nearly the same, at most one for each of the others."""
    rows = np.unique(np.linspace(0, len(others) - 1, min(MOST, len(others))).astype(int))
    if not len(rows) or not len(train):
        return ()
    own = thumbnails(others.take(rows)).astype(np.float32)
    recognisable = own.reshape(len(own), -1, 3).std(axis=1).max(axis=1) >= FLAT
    nearest, distance, closest = np.zeros(len(rows), int), np.full(len(rows), np.inf), np.zeros_like(own)
    for start in range(0, len(train), BLOCK):
        block = np.arange(start, min(start + BLOCK, len(train)))
        theirs = thumbnails(train.take(block)).astype(np.float32)
        squares = _mean_squares(own, theirs)
        closer = squares.min(axis=1) < distance
        nearest[closer] = block[squares.argmin(axis=1)[closer]]
        closest[closer] = theirs[squares.argmin(axis=1)[closer]]
        distance = np.minimum(distance, squares.min(axis=1))
    brightness = ((own - closest).reshape(len(own), -1, 3) @ BRIGHTNESS) ** 2
    near = (distance <= NEAR_IN_COLOUR**2) & (brightness.mean(axis=1) <= NEAR**2)
    copies = np.flatnonzero(recognisable & near)
    return tuple((train.ids[int(nearest[i])], others.ids[int(rows[i])]) for i in copies)


def thumbnails(examples: Examples) -> UInt8[np.ndarray, "n 768"]:
    """A colour thumbnail of every image."""

    def thumbnail(index: int) -> np.ndarray:
        image = draft(examples.images, index, (DECODED, DECODED)).image
        # Boxes would take whole pixels of a small image, so that its edges fall elsewhere than in a copy.
        return np.asarray(image.resize((SIDE, SIDE), Image.Resampling.BILINEAR), np.uint8).reshape(-1)

    with ThreadPoolExecutor() as pool:
        return np.stack([*pool.map(thumbnail, range(len(examples)))])


def _mean_squares(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The mean squared difference of every row of `first` to every row of `second`."""
    cross = first @ second.T
    squares = (first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1)[None, :] - 2 * cross
    return np.maximum(squares, 0) / first.shape[1]
