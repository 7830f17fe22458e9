"""ImageNet and its five distribution shifts, read from local copies in the layouts in which they are distributed."""

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
from tracer.evaluation.suites.layouts import LabelledImages, read
from tracer.evaluation.suites.projection import Columns, Everything, Projection
from tracer.evaluation.suites.shift import AbsentError, Average, Role, Shift, Suite
from tracer.evaluation.suites.synsets import CLASSES, positions, subset
from tracer.models.prompts import templates


@dataclass(frozen=True)
class Set:
    """One of the six test sets: its usual folders, its classes and its number of images."""

    name: str
    short: str
    size: int
    folders: tuple[str, ...]
    homepage: str
    classes: Literal["all", "r", "a"] = "all"
    role: Role = "ood"

    def find(self, root: Path | None) -> Path:
        """The first of the usual folders that exists below `root`."""
        if root is None:
            raise AbsentError(f"{self.name} is missing (no root is given): get it from {self.homepage}")
        folder = next((root / name for name in self.folders if (root / name).is_dir()), None)
        if folder is None:
            names = ", ".join(self.folders)
            raise AbsentError(
                f"{self.name} is not in {root} (looked for {names}): get it from {self.homepage}"
            )
        return folder


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
TRAINING_IMAGES = 1_281_167
FOUR = Average("OOD w/o ObjNet", tuple(SETS[key].name for key in ("v2", "r", "a", "sketch")))


def imagenet(
    root: str | Path | None,
    *,
    only: Iterable[str] = SETS,
    elsewhere: Mapping[str, str] | None = None,
    sizes: Mapping[str, int] | None = None,
) -> Suite:
    """The suite of the paper: ImageNet (ID), V2, R, A, Sketch and ObjectNet (OOD).

    `elsewhere` gives the location of sets that are not in a usual folder below `root`: a folder, shards, or any data
    with WordNet ids or indices as labels. `sizes` replaces the expected number of images.
    """
    elsewhere, sizes, keys = elsewhere or {}, sizes or {}, tuple(only)
    for key in (*keys, *sizes):
        if key not in SETS:
            raise unknown("ImageNet test set", key, SETS)
    folder = _folder(root, elsewhere)
    shifts = [_shift(key, folder, elsewhere.get(key), sizes.get(key, SETS[key].size)) for key in keys]
    return Suite("imagenet", tuple(shifts), extra=(FOUR,))


def check(root: str | Path | None, elsewhere: Mapping[str, str] | None = None) -> list[str]:
    """One line per test set: whether it is complete, and where to get it; images are counted, not read.

    Lines of complete sets begin with `COMPLETE`.
    """
    folder = _folder(root, elsewhere or {})
    return [_line(key, folder, (elsewhere or {}).get(key)) for key in SETS]


def parse_locations(specs: Iterable[str]) -> dict[str, str]:
    """Locations of single sets, each written NAME=PLACE, for example `val=hf:imagenet-1k`."""
    locations = {}
    for spec in specs:
        key, equals, location = spec.partition("=")
        if not equals or not location:
            raise UserError(f"{spec!r} must be written NAME=PLACE, with a name out of {', '.join(SETS)}")
        locations[key] = location
    return locations


def _folder(root: str | Path | None, elsewhere: Mapping[str, str]) -> Path | None:
    """The root as a path, checked; it may be None if all sets are elsewhere."""
    for key in elsewhere:
        if key not in SETS:
            raise unknown("ImageNet test set", key, SETS)
    if root is not None and not Path(root).is_dir():
        raise UserError(f"the root {root} is not a folder")
    return None if root is None else Path(root)


def _line(key: str, root: Path | None, elsewhere: str | None) -> str:
    each = SETS[key]
    try:
        location = elsewhere or each.find(root)
        count = len(_images(key, location).ids)
    except UserError as error:
        return f"✗ {error}"
    if count == each.size:
        return f"{COMPLETE} {each.name}: {count} images in {location}, complete"
    return f"✗ {each.name}: {count} of {each.size} images in {location}: get the rest from {each.homepage}"


def _images(key: str, location: str | Path) -> LabelledImages:
    """The images of a set; an error if their classes are not those of the set."""
    if key == "objectnet":
        return objectnet.overlapping(Path(location), objectnet.mapping(Path(location)))
    images = read(location)
    positions(images.keys, SETS[key].classes, SETS[key].name)
    return images


def _shift(key: str, root: Path | None, elsewhere: str | None, size: int) -> Shift:
    """A set as a shift; if it is missing, loading it raises the error."""
    each = SETS[key]
    try:
        location = elsewhere or each.find(root)
        load, project = _objectnet(Path(location)) if key == "objectnet" else _plain(each, location)
    except AbsentError as error:
        load, project = partial(_raise, error), Everything(CLASSES)
    return Shift(
        name=each.name,
        role=each.role,
        load=load,
        classes=_names(),
        project=project,
        templates=templates("openai"),
        size=size,
        short=each.short,
    )


def _plain(each: Set, location: str | Path) -> tuple[Callable[[], Examples], Projection]:
    columns = subset(each.classes)
    project = Everything(CLASSES) if each.classes == "all" else Columns(columns, CLASSES)
    return partial(_examples, each, location), project


def _objectnet(location: Path) -> tuple[Callable[[], Examples], Projection]:
    mapping = objectnet.mapping(location)
    return partial(objectnet.examples, location, mapping), mapping.projection


def _examples(each: Set, location: str | Path) -> Examples:
    images, ids, keys = read(location)
    names = _names()
    return Examples(
        name=each.name,
        images=images,
        ids=ids,
        labels=np.array(positions(keys, each.classes, each.name), np.int64),
        captions=[()] * len(ids),
        classes=tuple(names[i] for i in subset(each.classes)),
    )


def _names() -> tuple[str, ...]:
    from tracer.models.open_clip_compat import open_clip  # late: slow to import

    return tuple(open_clip.IMAGENET_CLASSNAMES)


def _raise(error: AbsentError) -> Examples:
    raise error
