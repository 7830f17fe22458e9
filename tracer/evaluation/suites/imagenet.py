"""ImageNet and its five distribution shifts, read from local copies in the layouts in which they are distributed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, NoReturn

from tracer.core.errors import UserError, unknown
from tracer.data.examples import Examples
from tracer.evaluation.suites import objectnet
from tracer.evaluation.suites.layouts import read
from tracer.evaluation.suites.shift import AbsentError, Average, Groups, Role, Shift, Suite
from tracer.evaluation.suites.synsets import positions, subset, synsets
from tracer.models.open_clip_compat import open_clip
from tracer.models.prompts import templates


@dataclass(frozen=True)
class Set:
    """One of the six test sets: its names, its number of images, where to get it, and its classes."""

    name: str
    short: str
    size: int
    homepage: str
    classes: Literal["all", "r", "a"] = "all"
    role: Role = "ood"


SETS: dict[str, Set] = {
    "val": Set("ImageNet", "IN", 50_000, "https://www.image-net.org", role="id"),
    "v2": Set("ImageNet-V2", "IN-V2", 10_000, "https://github.com/modestyachts/ImageNetV2"),
    "r": Set("ImageNet-R", "IN-R", 30_000, "https://github.com/hendrycks/imagenet-r", classes="r"),
    "a": Set("ImageNet-A", "IN-A", 7_500, "https://github.com/hendrycks/natural-adv-examples", classes="a"),
    "sketch": Set("ImageNet-Sketch", "IN-S", 50_889, "https://github.com/HaohanWang/ImageNet-Sketch"),
    "objectnet": Set("ObjectNet", "ObjNet", 18_574, "https://objectnet.dev"),
}
# The usual folders of each set below the root; the first that exists is read.
FOLDERS: dict[str, tuple[str, ...]] = {
    "val": (
        *("val", "imagenet/val", "ILSVRC2012/val", "ILSVRC/Data/CLS-LOC/val"),
        *("imagenet-val", "wds_imagenet1k"),
    ),
    "v2": (
        *("imagenetv2-matched-frequency-format-val", "imagenetv2-matched-frequency"),
        *("ImageNetV2-matched-frequency", "imagenetv2", "wds_imagenetv2"),
    ),
    "r": ("imagenet-r", "ImageNet-R", "wds_imagenet-r"),
    "a": ("imagenet-a", "ImageNet-A", "wds_imagenet-a"),
    "sketch": (
        *("sketch", "ImageNet-Sketch/sketch", "ImageNet-Sketch"),
        *("imagenet-sketch", "wds_imagenet_sketch"),
    ),
    "objectnet": ("objectnet-1.0", "objectnet", "ObjectNet", "wds_objectnet"),
}
COMPLETE = "✓"
TRAINING_IMAGES = 1_281_167
FOUR = Average("OOD w/o ObjNet", tuple(SETS[key].name for key in ("v2", "r", "a", "sketch")))


def imagenet(root: str | Path | None, at: Iterable[str] = ()) -> Suite:
    """The suite of the paper: ImageNet (ID), V2, R, A, Sketch and ObjectNet (OOD).

    Sets that are not in a usual folder below `root` are given in `at`, each NAME=PLACE, such as `val=hf:imagenet-1k`: a
    folder, shards, or any data with WordNet ids or indices as labels.
    """
    elsewhere = _locations(root, at)
    names = tuple(open_clip.IMAGENET_CLASSNAMES)
    shifts = []
    for key, each in SETS.items():
        load, groups = _source(key, root, elsewhere.get(key), names)
        shifts.append(
            Shift(
                name=each.name,
                role=each.role,
                load=load,
                classes=names,
                templates=templates("openai"),
                size=each.size,
                short=each.short,
                groups=groups,
            )
        )
    return Suite("imagenet", tuple(shifts), extra=(FOUR,))


def check(root: str | Path | None, at: Iterable[str] = ()) -> list[str]:
    """One line per test set: whether it is complete, and where to get it; images are counted, not read.

    Lines of complete sets begin with `COMPLETE`.
    """
    elsewhere = _locations(root, at)
    lines = []
    for key, each in SETS.items():
        try:
            load, _ = _source(key, root, elsewhere.get(key), synsets())  # open_clip, which has names, is slow
            count = len(load())
            location = elsewhere.get(key) or _find(key, root)
        except UserError as error:
            lines.append(f"✗ {error}")
            continue
        if count == each.size:
            lines.append(f"{COMPLETE} {each.name}: {count} images in {location}, complete")
        else:
            state = f"{count} of {each.size} images in {location}"
            lines.append(f"✗ {each.name}: {state}: get the rest from {each.homepage}")
    return lines


def _locations(root: str | Path | None, at: Iterable[str]) -> dict[str, str]:
    """The places in `at` by the names of their sets; an error if one of these or the root is wrong."""
    locations = {}
    for spec in at:
        key, equals, location = spec.partition("=")
        if not equals or not location:
            raise UserError(f"{spec!r} must be written NAME=PLACE, with a name out of {', '.join(SETS)}")
        if key not in SETS:
            raise unknown("ImageNet test set", key, SETS)
        locations[key] = location
    if root is not None and not Path(root).is_dir():
        raise UserError(f"the root {root} is not a folder")
    return locations


def _find(key: str, root: str | Path | None) -> Path:
    """The first of the usual folders of a set that exists below `root`."""
    name, homepage = SETS[key].name, SETS[key].homepage
    if root is None:
        raise AbsentError(f"{name} is missing (no root is given): get it from {homepage}")
    folder = next((Path(root) / each for each in FOLDERS[key] if (Path(root) / each).is_dir()), None)
    if folder is None:
        looked = ", ".join(FOLDERS[key])
        raise AbsentError(f"{name} is not in {Path(root)} (looked for {looked}): get it from {homepage}")
    return folder


def _source(
    key: str, root: str | Path | None, elsewhere: str | None, names: tuple[str, ...]
) -> tuple[Callable[[], Examples], Groups]:
    """A function that reads a set, or raises the error if it is missing, and the columns of its classes.

    `names` are those of the 1000 classes.
    """
    each = SETS[key]
    try:
        location = elsewhere or _find(key, root)
        if key == "objectnet":
            mapping = objectnet.mapping(Path(location))
            return partial(objectnet.examples, Path(location), mapping), mapping.columns
    except AbsentError as error:
        return partial(_raise, error), ()
    groups = () if each.classes == "all" else tuple((index,) for index in subset(each.classes))
    return partial(_examples, each, location, names), groups


def _examples(each: Set, location: str | Path, names: tuple[str, ...]) -> Examples:
    """The images of a set; an error if their classes are not those of the set."""
    labelled = read(location)
    labels = positions(labelled.keys, each.classes, each.name)
    return labelled.examples(each.name, labels, tuple(names[index] for index in subset(each.classes)))


def _raise(error: AbsentError) -> NoReturn:
    raise error
