"""Build `Examples` from ids, label keys and captions; shared by all readers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tracer.data.classes import Classes, Spec, classes
from tracer.data.examples import Examples, Images
from tracer.data.formats.values import says_missing


def assemble(
    name: str,
    images: Images,
    ids: Sequence[str],
    *,
    keys: Sequence[str] | None = None,
    vocabulary: Iterable[str] | None = None,
    naming: Spec | None = None,
    numbered: bool = False,
    captions: Sequence[tuple[str, ...]] | None = None,
    splits: tuple[str, ...] = (),
    detected: Iterable[str] = (),
    warnings: Iterable[str] = (),
) -> Examples:
    """Examples with label keys as written in the data (`keys`) and class names from `naming`.

    `numbered` keys count the names of a list from 0, even if these are numbers themselves.
    `vocabulary` holds the keys of all splits, so that every split numbers its classes in the same way.
    """
    if keys is None:
        keys, mapping = [""] * len(ids), Classes((), ())
    else:
        mapping = classes({*keys, *(vocabulary or ())}, naming, numbered=numbered)
    return Examples(
        name=name,
        images=images,
        ids=ids,
        labels=mapping.labels(keys),
        captions=[()] * len(ids) if captions is None else captions,
        classes=mapping.names,
        splits=splits,
        detected=tuple(filter(None, (*detected, mapping.how))),
        warnings=tuple(filter(None, (*warnings, mapping.warning, _missing(captions or (), ids)))),
    )


def _missing(captions: Sequence[tuple[str, ...]], ids: Sequence[str]) -> str:
    """A warning if captions look like empty cells."""
    suspects = [i for i, texts in enumerate(captions) if any(map(says_missing, texts))]
    if not suspects:
        return ""
    first = f"{ids[suspects[0]]}: {', '.join(captions[suspects[0]])}"
    return f"{len(suspects)} captions look like the empty cells of a program, such as that of {first}"
