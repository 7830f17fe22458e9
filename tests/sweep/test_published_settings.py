"""Every setting of the paper's recipes beside a table of the published ones, and the published numbers themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tracer.core.kernels import Beta
from tracer.core.teachers import EMA, WMA, Frozen
from tracer.evaluation.suites.imagenet import SETS
from tracer.methods.base import method, options
from tracer.recipes import ablation, paper
from tracer.recipes.published import COLUMNS, published
from tracer.runs.experiment import Experiment, Settings
from tracer.sweep.product import Sweep

# What all rows of a table share: the released code, and the paper where it says so. Every setting is named.
PROTOCOL: dict[str, Any] = {
    "data": "x",
    "held_out": "y",
    "held_out_share": None,
    "test_share": None,
    "retain": (),
    "classes": "imagenet",
    **dict.fromkeys(("image_column", "caption_column", "label_column", "separator"), None),
    "model": "ViT-B-16",
    "pretrained": "openai",
    "templates": "released",
    "epochs": None,
    "steps": 25_030,
    "batch": 512,
    "chunk": None,
    "lr": 1e-5,
    "warmup": 500,
    "decay": 0.1,
    "decay_on": "all",
    "clip": None,
    "clamp_scale": False,
    "regularizer": None,
    "adapter": None,
    "batchnorm": "train",
    "augment": "crop",
    "decode": "draft",
    "precision": "auto",
    "checkpointing": False,
    "compile": False,
    "strict": False,
    "skip_unreadable": False,
    "white_level": None,
    "seed": 0,
}
CROSS_ENTROPY = {"lr": 3e-5, "clip": 1.0}
ROWS: dict[str, dict[str, Any]] = {
    "zeroshot": {},
    "ft": CROSS_ENTROPY,
    "l2sp": CROSS_ENTROPY,
    "kd": CROSS_ENTROPY,
    "lpft": {**CROSS_ENTROPY, "steps": 37_545},
    "flyp": {},
    "carft": {},
    "lipsum": {"steps": 50_000, "batch": 256, "warmup": 0.1, "decay": 0.0},
    "stock": CROSS_ENTROPY,
    "arf": {},
    "carot": {},
    "tracer": {"augment": "crop+flip"},
}
TABLES: dict[str, tuple[Any, tuple[str, ...], dict[str, Any], dict[str, dict[str, Any]]]] = {
    "table1_vitb16": (
        paper.table1_vitb16,
        ("zeroshot", "lpft", "flyp", "lipsum", "carot", "tracer"),
        {},
        {},
    ),
    "table2_vitb16": (paper.table2_vitb16, tuple(ROWS), {}, {}),
    "table3_rn50": (
        paper.table3_rn50,
        ("zeroshot", "ft", "lpft", "flyp", "carot", "tracer"),
        {"model": "RN50"},
        {"tracer": {"lr": 9e-6, "decay": 0.02}},
    ),
    "table3_vitb16": (paper.table3_vitb16, ("zeroshot", "ft", "lpft", "flyp", "carot", "tracer"), {}, {}),
    "table3_vitl14": (
        paper.table3_vitl14,
        ("zeroshot", "ft", "lpft", "flyp", "carot", "tracer"),
        {"model": "ViT-L-14", "batch": 224, "steps": 57_200},
        {"lpft": {"steps": 85_800}},
    ),
}
# Weights of the terms, with λ: FD's 2000 (200) is on a mean over all coordinates, ours on a squared distance.
TERMS: dict[tuple[str, str], dict[str, float]] = {
    ("table1_vitb16", "tracer"): {
        "contrastive": 1,
        "cross_frobenius": 0.05,
        "feature": 0.9 * 2000 / 512,
        "relational": 0.9 / 2,
        "interactive": 0.9,
        "cross": 0.9,
    },
    ("table3_rn50", "tracer"): {
        "contrastive": 1,
        "cross_frobenius": 0.01,
        "feature": 0.01 * 200 / 1024,
        "relational": 0.01 / 2,
        "interactive": 0.01,
        "cross": 0.01,
    },
    ("table3_vitl14", "tracer"): {
        "contrastive": 1,
        "cross_frobenius": 0.05,
        "feature": 0.9 * 2000 / 768,
        "relational": 0.9 / 2,
        "interactive": 0.9,
        "cross": 0.9,
    },
    ("table1_vitb16", "flyp"): {"contrastive": 1},
}


def rows(name: str) -> dict[str, Experiment]:
    recipe = TABLES[name][0]
    return {run.method: run for run in recipe(data="x", held_out="y", seeds=1, anchors="z").experiments}


def settings(run: Experiment) -> dict[str, Any]:
    return {key: value for key, value in vars(run).items() if key not in ("method", "options")}


@pytest.mark.parametrize("name", TABLES)
def test_every_setting_is_the_published_one(name: str) -> None:
    _, names, table, special = TABLES[name]
    runs = rows(name)
    assert tuple(runs) == names
    assert set(PROTOCOL) == set(Settings.__dataclass_fields__), "a new setting: what is its published value?"
    for each, run in runs.items():
        assert settings(run) == {**PROTOCOL, **table, **ROWS[each], **special.get(each, {})}


@pytest.mark.parametrize(("name", "row"), TERMS)
def test_every_term_has_its_published_weight(name: str, row: str) -> None:
    run = rows(name)[row]
    weighted = method(row, **run.options).stages[0].objective.weighted
    assert {term.name: weight for weight, term in weighted} == pytest.approx(TERMS[name, row])


def test_teachers_heads_and_pairs_are_the_published_ones() -> None:
    for name in TABLES:
        steps = rows(name)["tracer"].steps
        assert steps is not None
        for each, run in rows(name).items():
            made = method(each, **run.options)
            policies = [stage.policy(steps) for stage in made.stages]
            if each == "tracer":
                assert policies == [WMA(Beta(0.5), 1, "progress")]  # every step: both clocks are the same
            if each == "carot":
                assert policies == [EMA(momentum=0.9, every=500, ramp=0.2, ramp_from=0.05)]
            if each in ("kd", "carft", "lipsum"):
                assert policies == [Frozen()]
            if each in ("tracer", "carot"):
                assert made.stages[0].buffers == ("keep" if name == "table3_rn50" else "copy")
            if "targets" in {option.name for option in options(each)}:
                assert made.options["targets"] == "pair"
    shares = [stage.share for stage in method("lpft", **rows("table1_vitb16")["lpft"].options).stages]
    assert shares[0] / sum(shares) == pytest.approx(1 / 3)  # 5 of 15 epochs
    assert rows("table3_rn50")["carot"].options["orthogonal_side"] == "rows"
    assert rows("table1_vitb16")["carot"].options.get("orthogonal_side", "columns") == "columns"


@pytest.mark.parametrize(
    ("recipe", "option", "values"),
    [
        (ablation.strength, "strength", [0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1, 1.2, 1.5, 2, 3, 4, 5, 10]),
        (ablation.interval, "every", [1, 2, 5, 10, 50, 100, 500, 1000, 2500]),
        (ablation.beta, "beta", [0.2, 0.5, 0.7, 0.9, 1, 1.5]),
    ],
)
def test_ablations_have_the_published_values_and_rows(recipe: Any, option: str, values: list[float]) -> None:
    sweep: Sweep = recipe(data="x", held_out="y", seeds=1)
    assert sorted({run.options[option] for run in sweep.experiments}) == values
    assert sweep.published is not None
    printed = {row for row, _ in sweep.published.values}
    named = {sweep.published.row(run) for run in sweep.experiments}
    assert printed <= named
    assert {row for row in named - printed if "progress" not in row} == set()


def test_the_ablation_of_terms_has_the_sixteen_published_rows() -> None:
    sweep = ablation.terms(data="x", held_out="y", seeds=1)
    assert sweep.published is not None
    for run in sweep.experiments:
        weighted = method("tracer", **{**run.options, "strength": 1.0}).stages[0].objective.weighted
        on = {term.name for weight, term in weighted if weight}
        assert sweep.published.row(run) == "".join("1" if name in on else "0" for name in ablation.TERMS)
    assert {row for row, _ in sweep.published.values} == {
        sweep.published.row(run) for run in sweep.experiments
    }


def test_published_numbers_are_whole_and_their_means_agree() -> None:
    """The mean of the printed shifts is the printed mean up to rounding, but for five rows."""
    assert COLUMNS[:-1] == tuple(SETS)
    counts = {"table1": 12, "table2": 12, "table3_rn50": 12, "table3_vitl14": 12}
    counts |= {"terms": 32, "strength": 28, "interval": 18, "beta": 12}
    off = []
    for table, count in counts.items():
        values = published(table)
        assert len(values) == count
        for (row, metric), line in values.items():
            assert len(line) == (6 if table == "table2" else 7)
            shifts = [line[key] for key in COLUMNS[1:-1] if key in line]
            rounding = 0.006 if metric == "accuracy" else 6e-4 if table == "table1" else 6e-5
            if abs(sum(shifts) / len(shifts) - line["average"]) > rounding:
                off.append((table, row, metric))
    assert off == [
        ("table1", "zeroshot", "accuracy"),
        ("table1", "flyp", "ece_batched"),
        ("table1", "lipsum", "ece_batched"),
        ("terms", "0000", "accuracy"),
        ("terms", "0000", "ece_batched"),
    ]
    assert published("table1")["tracer", "accuracy"]["average"] == 64.07
    assert published("table3_vitl14")["carot", "ece_batched"]["val"] == 0.0349


def test_rows_can_be_chosen_and_test_sets_are_found_beside_train(tmp_path: Path) -> None:
    for name in ("train", "val"):
        (tmp_path / name).mkdir()
    sweep = paper.table1_vitb16(data=str(tmp_path), methods=("tracer",), seeds=2)
    assert [(run.method, run.seed) for run in sweep.experiments] == [("tracer", 0), ("tracer", 1)]
    assert {(run.data, run.held_out) for run in sweep.experiments} == {
        (str(tmp_path / "train"), str(tmp_path / "val"))
    }
    assert sweep.tests is not None
    assert (sweep.tests.root, sweep.tests.templates, sweep.tests.allow_partial) == (
        tmp_path,
        "released",
        False,
    )
    alone = paper.table1_vitb16(data=str(tmp_path / "train"))
    assert alone.tests is None
    with pytest.raises(Exception, match="unknown row of this table 'tracr': did you mean tracer"):
        paper.table1_vitb16(data="x", methods=("tracr",))
