"""Every recipe is imported and planned, on embedded digits in place of ImageNet: no weights are fetched."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace

import pytest

from tracer.core.errors import UserError
from tracer.core.kernels import Beta
from tracer.core.teachers import EMA, WMA
from tracer.data.split import divide
from tracer.methods.base import method, options
from tracer.recipes import ablation, paper
from tracer.runs.experiment import Experiment
from tracer.runs.plan import plan
from tracer.sweep import Sweep
from tracer.sweep.recipe import recipes

TABLES = [value for name, value in recipes(paper).items() if name.startswith("table")]


def experiments(recipe: Callable[..., Sweep | Experiment]) -> tuple[Experiment, ...]:
    stand_in = {"data": "digits", "classes": "", "anchors": "digits"}
    made = recipe(
        **{name: stand_in[name] for name in inspect.signature(recipe).parameters if name in stand_in}
    )
    return (made,) if isinstance(made, Experiment) else made.experiments


@pytest.mark.parametrize("recipe", TABLES, ids=lambda recipe: recipe.__doc__.partition(":")[0])
def test_every_recipe_can_be_planned(recipe: Callable[..., Sweep]) -> None:
    assert inspect.getdoc(recipe)
    division = divide("digits", check=lambda examples: examples)
    for asked in experiments(recipe):
        if asked.seed:
            continue
        small = asked if asked.steps is None else replace(asked, batch=16)
        made = plan(small, check_images=False, division=division)
        assert made.steps == 0 if asked.method == "zeroshot" else made.steps > made.warmup


@pytest.mark.parametrize("recipe", TABLES, ids=lambda recipe: recipe.__doc__.partition(":")[0])
def test_rows_differ_and_have_three_seeds(recipe: Callable[..., Sweep]) -> None:
    made = experiments(recipe)
    assert len({asked.id for asked in made}) == len(made)
    for name in {asked.method for asked in made}:
        seeds = [asked.seed for asked in made if asked.method == name]
        assert seeds == ([0] if name == "zeroshot" else [0, 1, 2])


def test_table_two_has_the_papers_rows() -> None:
    rows = {asked.method for asked in paper.table2_vitb16(data="x", anchors="y").experiments}
    assert rows == set(paper.ROWS)
    assert "arf" not in {asked.method for asked in paper.table2_vitb16(data="x").experiments}


def test_the_dynamics_figures_have_ten_teachers() -> None:
    runs = paper.dynamics(data="x").experiments
    policies = [method(run.method, **run.options).stages[0].policy(25_030) for run in runs]
    assert len({run.id for run in runs}) == len(runs) == 10
    assert policies[:2] == [EMA(momentum=0.9, every=every, ramp=0.2) for every in (1, 500)]
    assert policies[2:7] == [WMA(Beta(0.5), every, "updates") for every in (5, 50, 500, 1000, 2500)]
    assert policies[7:] == [WMA(Beta(beta)) for beta in (0.2, 1.0, 1.5)]
    assert {run.augment for run in runs} == {"crop+flip"}


ABLATIONS = [value for value in recipes(ablation).values() if "model" in inspect.signature(value).parameters]


@pytest.mark.parametrize("recipe", ABLATIONS, ids=lambda recipe: recipe.__doc__.partition(":")[0])
def test_ablations_on_imagenet_are_the_papers_row(recipe: Callable[..., Sweep]) -> None:
    """With class names and a held-out set: the default names of ImageNet's folders are WordNet ids."""
    assert len(ABLATIONS) == 7
    sweep = recipe(data="x", held_out="y", seeds=1)
    (row, *_) = [
        each
        for each in paper.table1_vitb16(data="x", held_out="y", seeds=1).experiments
        if each.method == "tracer"
    ]
    assert sweep.start is None
    for run in sweep.experiments:
        own = replace(run, options=row.options, method="tracer", pretrained="openai")
        assert own == row
        assert (run.classes, run.held_out) == ("imagenet", "y")
    short = recipe(data="x", classes="", seeds=1, steps=250).experiments[0]
    assert (short.steps, short.classes) == (250, None)
    assert round((short.warmup or 0) * 250) == 5


@pytest.mark.parametrize("data", ["", "digits"])
def test_an_ablation_of_nothing_is_refused(data: str) -> None:
    for recipe in ABLATIONS:
        with pytest.raises(UserError, match="--values: give at least one value"):
            recipe(data=data, values=())


def test_an_experiment_is_the_same_however_much_of_it_was_said() -> None:
    short = Experiment(data="digits", method="tracer")
    defaults = {option.name: option.default for option in options("tracer")}
    assert replace(short, options=defaults).id == short.id
    for name, value in {"beta": 0.7, "every": 2, "strength": 1.0}.items():
        assert (
            replace(short, options={**defaults, name: value}).id == replace(short, options={name: value}).id
        )
        assert replace(short, options={name: value}).id != short.id
    assert replace(short, compile=True).id != short.id
