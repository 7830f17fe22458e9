"""`tracer.evaluate`: accuracy and calibration of a run or a model on test sets, with intervals."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from tracer.api.inputs import data_names, model_run
from tracer.core.errors import UserError
from tracer.core.metrics import Interval, accuracy
from tracer.data.classes import Spec
from tracer.evaluation.model import Model
from tracer.evaluation.overlap import divided, trained_warning
from tracer.evaluation.predict import Scorer
from tracer.evaluation.render import document
from tracer.evaluation.score import Scored, score_test_sets
from tracer.evaluation.suites.shift import Opened, Suite
from tracer.evaluation.tables import score_tables
from tracer.evaluation.target import NO_RUN, Target, target, targets
from tracer.evaluation.test_sets import TestSets
from tracer.evaluation.verdict import Change, Verdict, plus_minus
from tracer.measure.answers import Store
from tracer.parallel import World, launched
from tracer.runs.run import Run

Tell = Callable[[str], object]


class Score(NamedTuple):
    """A measure with its 95 % interval and the number of images behind it."""

    value: float
    low: float
    high: float
    n: int


class Scores(dict[str, dict[str, dict[str, Score]]]):
    """Scores by model ("before", "after"), test set and metric: `scores["after"]["photos"]["accuracy"].value`.

    Prints as a table, in a terminal and in a notebook.
    """

    def __init__(self, scored: dict[str, list[Scored]], suite: Suite, trained_on: Sequence[str] = ()) -> None:
        super().__init__()
        self.trained_on = frozenset(trained_on)
        self.rows = {name: [row for each in sets for row in each.estimates] for name, sets in scored.items()}
        self.suite = suite
        self.hits = {
            name: {each.opened.shift.name: each.hits for each in sets} for name, sets in scored.items()
        }
        for name, rows in self.rows.items():
            sets = self.setdefault(name, {})
            for row in rows:
                sets.setdefault(row.data, {})[row.metric] = Score(row.value, row.low, row.high, row.n)

    @property
    def verdict(self) -> Verdict | None:
        """What was gained and lost between the first model and the last, on the same images; None for one model.

        Data are the task if they have the classes of training.
        """
        before, *others = self.hits.values()
        if not others:
            return None
        measured = [shift for shift in self.suite if before.get(shift.name)]
        measured.sort(key=lambda shift: shift.role != "id")
        if not measured:
            return None
        changes = [Change.of(before[shift.name], others[-1][shift.name]) for shift in measured]
        first = measured[0]
        task = first.role == "id" and {*first.classes} == self.trained_on
        retained = {shift.name: change for shift, change in zip(measured[1:], changes[1:], strict=True)}
        return Verdict(changes[0], retained, "task" if task else f"accuracy on {first.name}")

    @property
    def sentence(self) -> str:
        """How much of each labelled test set the last model names right, with its interval and count."""
        (*_, rows) = self.rows.values()
        shares = [
            f"{plus_minus(Interval(row.low, row.value, row.high))} of {row.n} images of {row.data}"
            for row in rows
            if row.metric == accuracy.name
        ]
        return f"It names right {', '.join(shares)}." if shares else ""

    def table(self, format: str = "text") -> str:
        """The scores as text, markdown, latex, csv or json."""
        return document(score_tables(self.rows, self.suite, published=format != "text"), format)

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        return f'<pre style="font-family: monospace">{escape(self.table())}</pre>'


def evaluate(
    model: Run | Model | str | Path,
    data: Any = (),
    *,
    classes: Spec | None = None,
    suite: str | None = None,
    root: str | Path | None = None,
    weights: str | None = None,
    pretrained: str = "auto",
    templates: str | None = None,
    corrupt: Sequence[str] = (),
    out: str | Path | None = None,
    device: str = "auto",
) -> Scores:
    """Score a run before and after training, or a single model, on own data or on a suite.

    Args:
        model: a run or its folder, what `tracer.load` returned, an exported folder, or a name of open_clip.
        data: one data set, in any form that `finetune` takes, or a list of specs written role=data.
        classes: names of labels that are numbers, where data are given from Python.
        suite: imagenet or emojishift, instead of data.
        root: the folder that holds the suite's data sets.
        weights: of a run: only these weights, instead of before and after.
        pretrained: weights, where the model is a name.
        templates: prompts: openai, simple, name, or a file.
        corrupt: also score the in-distribution sets under these corruptions.
        out: where predictions and scores are written; by default in the run's folder.
        device: auto, cpu, cuda or mps.
    """
    sets = TestSets(
        data=data_names(data, classes),
        suite=suite,
        root=None if root is None else Path(root),
        corrupt=tuple(corrupt),
        templates=templates,
    )
    folder, run = None if out is None else Path(out), model_run(model)
    if isinstance(model, Model):
        student = model.student
        known = {"task": model.task, "white_level": student.white_level}
        if weights is not None:
            raise UserError(NO_RUN)
        models: tuple[Target, ...] = (Target(student.name, lambda: student, keep=folder, **known),)
    elif run is None:
        models = targets(str(model), pretrained, weights, folder)
    elif weights is not None:
        models = (target(run, weights, weights, folder),)
    else:
        before = target(run, "pretrained", "before", folder and folder / "pretrained")
        models = (target(run, run.weights, "after", folder), before)
    with launched(device) as world:
        return score(models, sets, world, warnings.warn)


def score(models: Sequence[Target], sets: TestSets, world: World, tell: Tell) -> Scores:
    """Score models on the same test sets; `tell` receives remarks about how data are read and scored."""
    first = models[0]
    notify: Tell = tell if world.first else lambda message: None
    for role, spec in sets.roles if sets.data else ():
        if inherited := sets.inherited(first, role, spec):
            notify(f"{spec} is read as the run read its data: {' '.join(inherited)}")
    suite, opened = sets.open(first, world)
    for warning in dict.fromkeys(note for each in opened for note in each.examples.warnings):
        notify(warning)
    for remark in _remarks(first, opened, sets) if sets.data and world.first else ():
        notify(remark)
    scored = {each.name: _score(each, opened, world, sets.command, notify) for each in models}
    before_first = [*(each.name for each in models[1:]), first.name]
    return Scores({name: scored[name] for name in before_first}, suite, first.task.classes)


def _score(
    target: Target, sets: Sequence[Opened], world: World, command: Mapping[str, Any], notify: Tell
) -> list[Scored]:
    """All scores of a target; several processes share the images, and the first one writes."""
    student = target.student()
    world.place(student)
    scorer = Scorer(student, world, target.task.classes)
    for shift, examples, _ in sets if student.head is not None else ():
        others = sorted({*(shift.classes or examples.classes)} ^ {*target.task.classes})
        if examples.labelled and shift.role != "retain" and others:
            notify(
                f"{shift.name} is scored by class names, not by the trained head of {target.name}, which has other "
                f"classes: {others[0]!r} is in one list only"
            )
    scored = []
    store = None if target.keep is None or not world.first else Store(target.keep)
    by = "" if store is None else target.by(student)
    for each in score_test_sets(scorer, sets, target.task.temperature):
        scored.append(each)
        if store is not None:
            answers = each.answers(by, command)
            if differs := store.near(answers.name, answers.role, by, answers.key):
                notify(f"what {target.keep} holds of {answers.name} is replaced: it is of other {differs}")
            store.write(answers)
    return scored


def _remarks(target: Target, opened: Sequence[Opened], sets: TestSets) -> Iterator[str]:
    """Where own data have classes that the run was not trained on, or images that it was trained on."""
    division = None if target.run is None else divided(target.run)
    for shift, examples, _ in opened:
        if shift.derived:
            continue
        trained_on = target.task.classes
        others = [name for name in examples.classes if name not in trained_on]
        if trained_on and others and shift.role != "retain" and sets.reading.classes is None:
            message = f"{shift.name} has classes the run was not trained on, such as {others[0]!r}"
            yield f"{message}: scored over its own {len(shift.classes)} (--classes FILE gives another list)"
        if division is not None and (warning := trained_warning(division.train, examples, shift.name)):
            yield warning
