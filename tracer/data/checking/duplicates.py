"""Images that are there twice: byte by byte, or nearly: resized, re-encoded or retouched copies."""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from tracer.data.encoded import draft, hash_image
from tracer.data.examples import Examples

SIDE = 16  # pixels of the thumbnails that are compared; in colour, since drawings may differ in nothing else
DECODED = 64  # pixels of a JPEG before it is made that small; fewer would show how it was decoded
NEAR = 3.0  # of 255 levels: root mean square difference in brightness of two thumbnails of one picture
NEAR_IN_COLOUR = 6.0  # that of red, green and blue, which JPEG stores at half the size
BRIGHTNESS = np.array([0.299, 0.587, 0.114], np.float32)  # of red, green and blue
FLAT = 8.0  # standard deviation of every colour below which a thumbnail shows too little to be recognised
MOST = 5_000  # images of a test set that are compared, evenly spaced
BLOCK = 20_000  # training images at a time, to bound memory


@dataclass(frozen=True)
class Duplicates:
    """Groups of ids whose images are identical, byte by byte."""

    within: tuple[tuple[str, ...], ...] = ()
    across: tuple[tuple[str, str], ...] = ()  # an example, and a held-out one
    contradicting: tuple[tuple[str, ...], ...] = ()  # groups in `within` with different labels


def duplicates(examples: Examples, held_out: Examples | None = None) -> Duplicates:
    """Identical images among the examples, and between them and the held-out ones."""
    indices: dict[bytes, list[int]] = defaultdict(list)
    for index in range(len(examples)):
        indices[_digest(examples, index)].append(index)
    groups = [group for group in indices.values() if len(group) > 1]
    shared = [
        (examples.ids[indices[digest][0]], held_out.ids[index])
        for index in range(len(held_out) if held_out else 0)
        if held_out and (digest := _digest(held_out, index)) in indices
    ]
    return Duplicates(
        within=tuple(tuple(examples.ids[i] for i in group) for group in groups),
        across=tuple(shared),
        contradicting=tuple(
            tuple(examples.ids[i] for i in group)
            for group in groups
            if len({int(examples.labels[i]) for i in group}) > 1
        ),
    )


def trained_too(train: Examples, others: Examples, called: str) -> str:
    """How many of `others`, which are `called` so, are also in `train`, byte by byte, and one of them.

    Empty if none is, or if the content of either is not known.
    """
    shared = shared_images(train, others)
    if not shared:
        return ""
    count = f"{len(shared)} of {len(others)} {called} are also trained on"
    return f"{count}, such as {others.ids[shared[0]]}"


def shared_images(first: Examples, others: Examples) -> list[int]:
    """Places in `others` of images that are also in `first`, byte by byte; none if either's content is not known."""
    if first.contents is None or others.contents is None:
        return []
    known = {row.tobytes() for row in first.contents}
    return [i for i, row in enumerate(others.contents) if row.tobytes() in known]


def _digest(examples: Examples, index: int) -> bytes:
    if examples.contents is not None:
        return examples.contents[index].tobytes()
    return hash_image(examples.images, index)


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
        image = draft(examples.images, index, (DECODED, DECODED)).image.convert("RGB")
        # Boxes would take whole pixels of a small image, so that its edges fall elsewhere than in a copy.
        return np.asarray(image.resize((SIDE, SIDE), Image.Resampling.BILINEAR), np.uint8).reshape(-1)

    with ThreadPoolExecutor() as pool:
        return np.stack([*pool.map(thumbnail, range(len(examples)))])


def _mean_squares(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The mean squared difference of every row of `first` to every row of `second`."""
    cross = first @ second.T
    squares = (first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1)[None, :] - 2 * cross
    return np.maximum(squares, 0) / first.shape[1]
