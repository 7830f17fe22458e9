"""Examples put together from what a source found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tracer.data.classes import Spec, classes
from tracer.data.examples import Examples, Images


def assembled(
    name: str,
    images: Images,
    ids: Sequence[str],
    *,
    keys: Sequence[str] | None = None,
    vocabulary: Iterable[str] | None = None,
    naming: Spec | None = None,
    captions: Sequence[tuple[str, ...]] | None = None,
    splits: tuple[str, ...] = (),
    detected: Iterable[str] = (),
) -> Examples:
    """Examples whose labels are written `keys` in the data, and named as the user says.

    `vocabulary` holds the keys of all splits, so that a class missing in one of them shifts no other.
    """
    named = None if keys is None else classes({*keys, *(vocabulary or ())}, naming)
    return Examples(
        name=name,
        images=images,
        ids=ids,
        labels=np.full(len(ids), -1, np.int64) if named is None or keys is None else named.labels(keys),
        captions=[()] * len(ids) if captions is None else captions,
        classes=named.names if named else (),
        splits=splits,
        detected=tuple(filter(None, (*detected, named.how if named else ""))),
    )
