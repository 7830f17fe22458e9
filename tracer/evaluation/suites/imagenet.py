"""ImageNet and its five shifts, read from local copies as they are distributed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from tracer.core.errors import UserError, unknown
from tracer.data.examples import Examples
from tracer.evaluation.suites import objectnet
from tracer.evaluation.suites.layouts import Found, read
from tracer.evaluation.suites.projection import Columns, Everything, Projection
from tracer.evaluation.suites.shift import AbsentError, Average, Role, Shift, Suite
from tracer.evaluation.suites.synsets import CLASSES, places, subset
from tracer.models.prompts import templates


@dataclass(frozen=True)
class Set:
    """One of the six: where its copies usually lie, which classes it asks about, how many images it has."""

    name: str
    short: str
    size: int
    folders: tuple[str, ...]
    homepage: str
    classes: Literal["all", "r", "a"] = "all"
    role: Role = "ood"

    def find(self, root: Path | None) -> Path:
        """The first of the usual places below `root` that is there."""
        if root is None:
            raise AbsentError(f"{self.name} is nowhere (no root is given): get it from {self.homepage}")
        found = next((root / each for each in self.folders if (root / each).is_dir()), None)
        if found is None:
            looked = ", ".join(self.folders)
            raise AbsentError(
                f"{self.name} is not in {root} (looked for {looked}): get it from {self.homepage}"
            )
        return found


SETS: dict[str, Set] = {
    "val": Set(
        "ImageNet",
        "IN",
        50_000,
        (
            "val",
            "imagenet/val",
            "ILSVRC2012/val",
            "ILSVRC/Data/CLS-LOC/val",
            "imagenet-val",
            "wds_imagenet1k",
        ),
        "https://www.image-net.org",
        role="id",
    ),
    "v2": Set(
        "ImageNet-V2",
        "IN-V2",
        10_000,
        (
            *("imagenetv2-matched-frequency-format-val", "imagenetv2-matched-frequency"),
            *("ImageNetV2-matched-frequency", "imagenetv2", "wds_imagenetv2"),
        ),
        "https://github.com/modestyachts/ImageNetV2",
    ),
    "r": Set(
        "ImageNet-R",
        "IN-R",
        30_000,
        ("imagenet-r", "ImageNet-R", "wds_imagenet-r"),
        "https://github.com/hendrycks/imagenet-r",
        classes="r",
    ),
    "a": Set(
        "ImageNet-A",
        "IN-A",
        7_500,
        ("imagenet-a", "ImageNet-A", "wds_imagenet-a"),
        "https://github.com/hendrycks/natural-adv-examples",
        classes="a",
    ),
    "sketch": Set(
        "ImageNet-Sketch",
        "IN-S",
        50_889,
        ("sketch", "ImageNet-Sketch/sketch", "ImageNet-Sketch", "imagenet-sketch", "wds_imagenet_sketch"),
        "https://github.com/HaohanWang/ImageNet-Sketch",
    ),
    "objectnet": Set(
        "ObjectNet",
        "ObjNet",
        18_574,
        ("objectnet-1.0", "objectnet", "ObjectNet", "wds_objectnet"),
        "https://objectnet.dev",
    ),
}
COMPLETE = "✓"
FOUR = Average("OOD w/o ObjNet", tuple(SETS[key].name for key in ("v2", "r", "a", "sketch")))


def imagenet(
    root: str | Path | None,
    *,
    only: Iterable[str] = SETS,
    elsewhere: Mapping[str, str] | None = None,
    sizes: Mapping[str, int] | None = None,
) -> Suite:
    """The suite of the paper: ImageNet (ID), V2, R, A, Sketch and ObjectNet (OOD).

    `elsewhere` says where a set lies if not in one of the usual folders below `root`: a folder, shards, or
    any data with WordNet ids or indices as labels. `sizes` replaces the expected number of images.
    """
    elsewhere, sizes, wanted = elsewhere or {}, sizes or {}, tuple(only)
    for key in (*wanted, *sizes):
        if key not in SETS:
            raise unknown("ImageNet test set", key, SETS)
    folder = _folder(root, elsewhere)
    shifts = [_shift(key, folder, elsewhere.get(key), sizes.get(key, SETS[key].size)) for key in wanted]
    return Suite("imagenet", tuple(shifts), extra=(FOUR,))


def check(root: str | Path | None, elsewhere: Mapping[str, str] | None = None) -> list[str]:
    """What is there of the six sets, what is missing, and where to get it; images are counted, not read.

    A line about a set that is complete begins with `COMPLETE`.
    """
    folder = _folder(root, elsewhere or {})
    return [_line(key, folder, (elsewhere or {}).get(key)) for key in SETS]


def told_places(told: Iterable[str]) -> dict[str, str]:
    """Where single sets lie, each written NAME=PLACE, for example `val=hf:imagenet-1k`."""
    found = {}
    for each in told:
        key, equals, place = each.partition("=")
        if not equals or not place:
            raise UserError(f"{each!r} must be written NAME=PLACE, with a name out of {', '.join(SETS)}")
        found[key] = place
    return found


def _folder(root: str | Path | None, elsewhere: Mapping[str, str]) -> Path | None:
    """The root, if it is there; none is needed where all sets that are wanted lie elsewhere."""
    for key in elsewhere:
        if key not in SETS:
            raise unknown("ImageNet test set", key, SETS)
    if root is not None and not Path(root).is_dir():
        raise UserError(f"the root {root} is not a folder")
    return None if root is None else Path(root)


def _line(key: str, root: Path | None, given: str | None) -> str:
    chosen = SETS[key]
    try:
        place = given or chosen.find(root)
        count = len(_found(key, place).ids)
    except UserError as error:
        return f"✗ {error}"
    if count == chosen.size:
        return f"{COMPLETE} {chosen.name}: {count} images in {place}, complete"
    return f"✗ {chosen.name}: {count} of {chosen.size} images in {place}: get the rest from {chosen.homepage}"


def _found(key: str, place: str | Path) -> Found:
    """The images of a set and how their classes are written, once these are known to be its own."""
    if key == "objectnet":
        return objectnet.overlapping(Path(place), objectnet.mapping(Path(place)))
    found = read(place)
    places(found.keys, SETS[key].classes, SETS[key].name)
    return found


def _shift(key: str, root: Path | None, given: str | None, size: int) -> Shift:
    """A set where it lies; one that is not there says so when it is opened."""
    chosen = SETS[key]
    try:
        place = given or chosen.find(root)
        load, project = _objectnet(Path(place)) if key == "objectnet" else _plain(chosen, place)
    except AbsentError as error:
        load, project = partial(_raise, error), Everything(CLASSES)
    return Shift(
        name=chosen.name,
        role=chosen.role,
        load=load,
        classes=_names(),
        project=project,
        templates=templates("openai"),
        size=size,
        short=chosen.short,
    )


def _plain(chosen: Set, place: str | Path) -> tuple[Callable[[], Examples], Projection]:
    columns = subset(chosen.classes)
    project = Everything(CLASSES) if chosen.classes == "all" else Columns(columns, CLASSES)
    return partial(_examples, chosen, place), project


def _objectnet(place: Path) -> tuple[Callable[[], Examples], Projection]:
    mapping = objectnet.mapping(place)
    return partial(objectnet.examples, place, mapping), mapping.projection


def _examples(chosen: Set, place: str | Path) -> Examples:
    found = read(place)
    names = _names()
    return Examples(
        name=chosen.name,
        images=found.images,
        ids=found.ids,
        labels=np.array(places(found.keys, chosen.classes, chosen.name), np.int64),
        captions=[()] * len(found.ids),
        classes=tuple(names[i] for i in subset(chosen.classes)),
    )


def _names() -> tuple[str, ...]:
    from tracer.models.open_clip_compat import open_clip  # late: it is slow to import

    return tuple(open_clip.IMAGENET_CLASSNAMES)


def _raise(error: AbsentError) -> Examples:
    raise error
