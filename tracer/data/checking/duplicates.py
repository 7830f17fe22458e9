"""Exact duplicates among images."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from tracer.data.examples import Examples
from tracer.data.hashing import hash_image


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
