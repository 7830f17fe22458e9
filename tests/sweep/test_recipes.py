"""Every recipe is imported and planned, on embedded digits in place of ImageNet: no weights are fetched."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace

import pytest

from tracer.core.kernels import Beta
from tracer.core.teachers import EMA, WMA
from tracer.methods.base import method, options
from tracer.recipes import ablation, own_data, paper
from tracer.runs.experiment import Experiment
from tracer.runs.plan import plan
from tracer.sweep import Sweep
from tracer.sweep.recipe import recipes

TABLES = [getattr(paper, name) for name in dir(paper) if name.startswith("table")]
PRESETS = [getattr(own_data, name) for name in dir(own_data) if name.startswith("images_")]


def experiments(recipe: Callable[..., tuple[Experiment, ...] | Experiment]) -> tuple[Experiment, ...]:
    stand_in = {"data": "digits", "classes": "", "anchors": "digits"}
    made = recipe(
        **{name: stand_in[name] for name in inspect.signature(recipe).parameters if name in stand_in}
    )
    return (made,) if isinstance(made, Experiment) else made


@pytest.mark.parametrize("recipe", [*TABLES, *PRESETS], ids=lambda recipe: recipe.__name__)
def test_every_recipe_can_be_planned(recipe: Callable[..., tuple[Experiment, ...]]) -> None:
    assert inspect.getdoc(recipe)
    for asked in experiments(recipe):
        made = plan(asked if asked.steps is None else replace(asked, batch=16), check_images=False)
        assert made.steps == 0 if asked.method == "zeroshot" else made.steps > made.warmup


@pytest.mark.parametrize("recipe", TABLES, ids=lambda recipe: recipe.__name__)
def test_rows_differ_and_have_three_seeds(recipe: Callable[..., tuple[Experiment, ...]]) -> None:
    made = experiments(recipe)
    assert len({asked.id for asked in made}) == len(made)
    for name in {asked.method for asked in made}:
        seeds = [asked.seed for asked in made if asked.method == name]
        assert seeds == ([0] if name == "zeroshot" else [0, 1, 2])


def test_table_two_has_the_papers_rows() -> None:
    rows = {asked.method for asked in paper.table2_vitb16(data="x", anchors="y")}
    assert rows == set(paper.ROWS)
    assert "arf" not in {asked.method for asked in paper.table2_vitb16(data="x")}


def test_the_length_of_the_paper_is_its_own() -> None:
    """1 281 167 images in batches of 512, the last partial one included, ten times; 500 steps of warm-up always."""
    for recipe, steps, probed in (
        (paper.table1_vitb16, 25_030, 37_545),
        (paper.table3_rn50, 25_030, 37_545),
        (paper.table3_vitl14, 57_200, 85_800),
    ):
        rows = {row.method: row for row in recipe(data="x")}
        assert (rows["tracer"].steps, rows["lpft"].steps) == (steps, probed)
        assert rows["lpft"].clip == 1.0
        assert {row.warmup for name, row in rows.items() if name != "lipsum"} == {500}
        assert {row.decay_on for row in rows.values()} == {"all"}
        assert not any(row.clamp_scale for row in rows.values())
        assert {name for name, row in rows.items() if row.augment == "crop+flip"} == {"tracer"}
        assert {row.templates for row in rows.values()} == {"released"}
    assert {row.templates for row in paper.table1_vitb16(data="x", templates="paper")} == {"paper"}


def test_resnets_are_trained_as_released() -> None:
    """Teachers keep the pretrained BatchNorm statistics; CaRot's orthogonality is over the 2048 rows."""
    rows = {row.method: row.options for row in paper.table3_rn50(data="x")}
    assert {rows["tracer"]["buffers"], rows["carot"]["buffers"]} == {"keep"}
    assert rows["carot"]["orthogonal_side"] == "rows"
    for name in ("tracer", "carot"):
        assert method(name, **rows[name]).stages[0].buffers == "keep"


def test_the_dynamics_figures_have_ten_teachers() -> None:
    runs = paper.dynamics(data="x")
    policies = [method(run.method, **run.options).stages[0].policy(25_030) for run in runs]
    assert len({run.id for run in runs}) == len(runs) == 10
    assert policies[:2] == [EMA(momentum=0.9, every=every, ramp=0.2) for every in (1, 500)]
    assert policies[2:7] == [WMA(Beta(0.5), every, "updates") for every in (5, 50, 500, 1000, 2500)]
    assert policies[7:] == [WMA(Beta(beta)) for beta in (0.2, 1.0, 1.5)]
    assert {run.augment for run in runs} == {"crop+flip"}


ABLATIONS = [value for value in recipes(ablation).values() if "model" in inspect.signature(value).parameters]


@pytest.mark.parametrize("recipe", ABLATIONS, ids=lambda recipe: recipe.__name__)
def test_ablations_on_imagenet_are_the_papers_row(recipe: Callable[..., Sweep]) -> None:
    """With class names and a held-out set: the default names of ImageNet's folders are WordNet ids."""
    assert len(ABLATIONS) == 8
    sweep = recipe(data="x", held_out="y", seeds=1)
    (row, *_) = [
        each for each in paper.table1_vitb16(data="x", held_out="y", seeds=1) if each.method == "tracer"
    ]
    assert sweep.start is None
    for run in sweep.experiments:
        own = replace(run, options=row.options, method="tracer", pretrained="openai")
        assert own == row
        assert (run.classes, run.held_out) == ("imagenet", "y")
    short = recipe(data="x", classes="", seeds=1, steps=250).experiments[0]
    assert (short.steps, short.classes) == (250, None)
    assert round((short.warmup or 0) * 250) == 5


def test_released_coefficients_follow_the_width_of_the_embedding() -> None:
    for recipe, width, feature in (
        (paper.table3_rn50, 1024, 200),
        (paper.table3_vitb16, 512, 2000),
        (paper.table3_vitl14, 768, 2000),
    ):
        asked = next(a for a in recipe(data="x") if a.method == "tracer")
        weighted = method("tracer", **{**asked.options, "strength": 1.0}).stages[0].objective.weighted
        weights = {term.name: weight for weight, term in weighted}
        assert weights["feature"] == pytest.approx(feature / width)


def test_presets_take_some_hundred_steps() -> None:
    for recipe, count in zip(sorted(PRESETS, key=lambda r: r(data="x").lr), (200, 2000, 20_000), strict=True):
        asked = recipe(data="x")
        assert 150 < asked.epochs * (count // asked.batch) < 2000


def test_a_preset_takes_another_method_and_what_to_retain() -> None:
    asked = own_data.images_200(data="x", method="flyp", retain="y")
    assert (asked.method, asked.retain) == ("flyp", ("y",))
    assert replace(asked, seed=1).id != asked.id


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
