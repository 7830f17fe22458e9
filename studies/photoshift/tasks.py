"""The tasks, fixed before any method was compared: what is learned, where it is tested, and what should be kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from studies.photoshift.bridge import NAMES, PROMPT
from studies.photoshift.pictures import CLOTHES, PHOTOS, clothes, drawings, emoji, photos, sample
from tracer.data.examples import Examples
from tracer.evaluation.suites.corruptions import corrupt
from tracer.evaluation.suites.shift import Role, Shift, Suite

ANIMALS = ("bird", "cat", "deer", "dog", "frog", "horse")
VEHICLES = ("airplane", "car", "ship", "truck")
THINGS = ("apple", "bicycle", "book", "chair", "fish", "guitar", "house", "scissors", "snail", "umbrella")
CORRUPTIONS = ("gaussian_noise:1", "gaussian_noise:3", "contrast:3")
HELD_OUT = 120  # pictures to choose settings by: training pictures that are not trained on
TESTED, CORRUPTED = 240, 120  # pictures of a test set, and of its corrupted copies
FIRST_DRAWINGS, LAST_DRAWINGS = slice(0, 60), slice(60, 100)  # to train on and to test, in tasks of drawings

Load = Callable[[Path], Examples]


@dataclass(frozen=True)
class Task:
    """A task: training pictures a class, and the pictures of its test sets."""

    name: str
    question: str
    classes: tuple[str, ...]
    per_class: int
    learned: Callable[[Path, bool], Examples]  # training or test pictures
    ood: dict[str, Load]
    kept: dict[str, Load]
    steps: int = 24
    names: int = NAMES  # of ImageNet's classes, from which the model's projection is computed

    def training(self, cache: Path, seed: int) -> tuple[Examples, Examples]:
        """The pictures to train on and those to choose by, drawn by the seed."""
        held_out = HELD_OUT // len(self.classes)
        drawn = sample(self.learned(cache, False), self.per_class + held_out, seed)
        labels = drawn.labels.tolist()
        place = [labels[:row].count(label) for row, label in enumerate(labels)]
        split = [[row for row, at in enumerate(place) if (at < held_out) == part] for part in (False, True)]
        return drawn.take(split[0]), drawn.take(split[1])  # pyright: ignore[reportArgumentType]


def photos_of(classes: tuple[str, ...]) -> Callable[[Path, bool], Examples]:
    """Photographs of these classes."""
    return lambda cache, test: photos(cache, classes, test=test)


def kept_photos(shown: tuple[str, ...]) -> Load:
    """Test photographs of some classes, to be named among all ten."""

    def load(cache: Path) -> Examples:
        every = photos(cache, PHOTOS, test=True)
        own = [row for row, label in enumerate(every.labels) if PHOTOS[label] in shown]
        return every.take(own)  # pyright: ignore[reportArgumentType]

    return load


def drawn(classes: tuple[str, ...], rows: slice = LAST_DRAWINGS) -> Load:
    """Drawings of these classes."""
    return partial(drawings, classes=classes, rows=rows)


def as_emoji(classes: tuple[str, ...]) -> Load:
    """Emoji of these classes."""
    return lambda cache: emoji(classes)


def things(cache: Path, test: bool) -> Examples:
    """Drawings of things that no photograph here shows."""
    return drawings(cache, THINGS, LAST_DRAWINGS if test else FIRST_DRAWINGS)


def garments(cache: Path, test: bool) -> Examples:
    """Pictures of clothes."""
    return clothes(cache, CLOTHES, test=test)


ANIMAL_SHIFTS = {"drawings": drawn(ANIMALS, slice(0, 100)), "emoji": as_emoji(ANIMALS)}
TASKS = {
    task.name: task
    for task in (
        Task(
            "animals",
            "six animals, photographed; the vehicles kept",
            ANIMALS,
            100,
            photos_of(ANIMALS),
            ANIMAL_SHIFTS,
            {"vehicles": kept_photos(VEHICLES)},
        ),
        Task(
            "things",
            "ten things, drawn, of which the towers know little; the photographs kept",
            THINGS,
            60,
            things,
            {"emoji": as_emoji(THINGS)},
            {"photos": kept_photos(PHOTOS)},
        ),
        Task(
            "vehicles",
            "four vehicles, photographed; the animals kept",
            VEHICLES,
            150,
            photos_of(VEHICLES),
            {"drawings": drawn(VEHICLES, slice(0, 100)), "emoji": as_emoji(VEHICLES)},
            {"animals": kept_photos(ANIMALS)},
        ),
        Task(
            "few animals",
            "the animals again, from 50 photographs of each",
            ANIMALS,
            50,
            photos_of(ANIMALS),
            ANIMAL_SHIFTS,
            {"vehicles": kept_photos(VEHICLES)},
        ),
        Task(
            "photos",
            "all ten photographed classes; their drawings are the shift, other emoji are kept",
            PHOTOS,
            60,
            photos_of(PHOTOS),
            {"drawings": drawn(PHOTOS, slice(0, 100)), "emoji": as_emoji(PHOTOS)},
            {"emoji of things": as_emoji(THINGS)},
        ),
        Task(
            "clothes",
            "ten kinds of clothes, of which the towers know little; the photographs kept",
            CLOTHES,
            60,
            garments,
            {"drawings": drawn(CLOTHES, slice(0, 100))},
            {"photos": kept_photos(PHOTOS)},
        ),
        Task(
            "many animals",
            "the animals again, from 200 photographs of each",
            ANIMALS,
            200,
            photos_of(ANIMALS),
            ANIMAL_SHIFTS,
            {"vehicles": kept_photos(VEHICLES)},
        ),
    )
}
MAIN_TASKS = tuple(TASKS)
LENGTHS = {"brief animals": 8, "long animals": 72}  # tasks in which only the number of steps differs
TASKS |= {
    name: replace(TASKS["animals"], name=name, question=f"the animals again, in {steps} steps", steps=steps)
    for name, steps in LENGTHS.items()
}
KNOWLEDGE = {"animals, 100 names": 100, "animals, 25 names": 25}  # tasks in which only the start differs
TASKS |= {
    name: replace(
        TASKS["animals"], name=name, question=f"the animals again, {names} names known", names=names
    )
    for name, names in KNOWLEDGE.items()
}


def _limited(examples: Examples, limit: int) -> Examples:
    """A fixed part of a test set, with as many pictures of each class that it shows."""
    shown = len(set(examples.labels.tolist()))
    return sample(examples, -(-limit // shown), seed=0)


def picture_groups(name: str, shift: str, count: int) -> tuple[str, ...]:
    """For each picture of a test set, what is resampled as one: an emoji in all its styles, else the picture itself.

    The corrupted copies of a picture are one group.
    """
    sets = TASKS[name].ood | TASKS[name].kept
    if shift.startswith("emoji"):
        own = _limited(sets[shift](Path()), TESTED)
        return tuple(f"{name} {each.partition('/')[2]}" for each in own.ids)
    label = "corrupted" if shift.startswith("task ") else shift
    return tuple(f"{name} {label} {number}" for number in range(count))


@cache
def suite_of(name: str, folder: Path) -> Suite:
    """The test sets of a task; the same for every run."""
    task = TASKS[name]

    def shift(label: str, role: Role, load: Load, limit: int = TESTED) -> Shift:
        examples = _limited(load(folder), limit)
        return Shift(label, role, lambda: examples, examples.classes, (PROMPT,))

    own = shift("task", "id", lambda cache: task.learned(cache, True))
    some = Suite("corrupted", (shift("task", "id", lambda cache: task.learned(cache, True), CORRUPTED),))
    disturbed = corrupt(some, *CORRUPTIONS).shifts[1:]
    ood = [shift(label, "ood", load) for label, load in task.ood.items()]
    kept = [shift(label, "retain", load) for label, load in task.kept.items()]
    return Suite(f"photoshift {name}", (own, *ood, *kept, *disturbed))
