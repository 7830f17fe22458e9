"""PhotoShift without a network: a shrunken bridge and drawn pictures through the product, and made-up answers."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import numpy as np
import pytest
import timm
import torch
from closeness import bound
from transformers import BertConfig, BertModel, BertTokenizer

from studies.emojishift import compare
from studies.emojishift.measure import packed_bits, packed_shares
from studies.emojishift.rows import write
from studies.packages import Package, unpacked
from studies.photoshift import pictures
from studies.photoshift.__main__ import build
from studies.photoshift.bridge import PROMPT, config, joined, ridge
from studies.photoshift.claims import ALL, CHOSEN, CLAIMS, FURTHER_CLAIMS, ONE, VARIED, chosen, studies
from studies.photoshift.figure import frontiers, moving_teachers, pareto
from studies.photoshift.frontier import area_difference, areas
from studies.photoshift.page import moving_gains, page, side_by_side, tables_page
from studies.photoshift.rows import ZERO_SHOT, PhotoRow, read, row, with_starts
from studies.photoshift.runner import Workspace, measured, zero_shot
from studies.photoshift.study import ARM_OF, ARMS, SCALES, VARIANTS, Job, Scale, Setting, jobs
from studies.photoshift.tasks import ANIMALS, TASKS, suite_of
from tracer.core.errors import UserError
from tracer.models.export import export
from tracer.models.source import WEIGHTS_FILE
from tracer.models.student import load, read_weights
from tracer.models.zero_shot import zero_shot as classifier

TRUNK, SIZE, WIDTH = "test_efficientnet", 32, 16


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder as the build leaves it, with noise for photographs and drawings, and a shrunken model."""
    folder, rng = tmp_path_factory.mktemp("cache"), np.random.default_rng(0)
    labels = np.tile(np.arange(10), 80)
    np.savez(
        folder / "cifar-arrays.npz",
        images=rng.integers(0, 256, (800, 32, 32, 3), dtype=np.uint8),
        labels=labels,
    )
    for name in (*ANIMALS, "cruise ship"):
        if name != "deer":
            file = folder / "quickdraw" / f"{name}.ndjson.gz"
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(gzip.compress(b"\n".join([json.dumps([0.25] * 784).encode()] * 3)))
    text = folder / "text"
    torch.manual_seed(0)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *ascii_lowercase]
    words += [f"##{letter}" for letter in ascii_lowercase]
    tower = BertConfig(
        vocab_size=len(words),
        hidden_size=WIDTH,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
    )
    BertModel(tower, add_pooling_layer=False).save_pretrained(text)
    BertTokenizer(vocab={word: number for number, word in enumerate(words)}).save_pretrained(text)
    image = timm.create_model(TRUNK, pretrained=False).state_dict()
    model = joined(config(text, TRUNK, SIZE, WIDTH), image, text, folder / "model.json")
    export(model, folder / f"bridge-{SIZE}")
    for file in text.iterdir():
        file.unlink()  # the folder of the model must do without
    return folder


@pytest.fixture(autouse=True)
def few_photos_and_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "DRAWS", 50)
    monkeypatch.setattr(pictures, "TEST_PHOTOS", 600)


def test_the_projection_is_the_ridge_regression_of_the_names_on_the_rows() -> None:
    rows, text = torch.randn(30, 7, dtype=torch.float64), torch.randn(30, 5, dtype=torch.float64)
    projection, centred = ridge(rows, text), text - text.mean(dim=0)
    gradient = rows.T @ (rows @ projection - centred) + 10 * projection
    assert gradient.abs().max() < bound(30 * 7, size=100)  # of what cancels


def test_the_product_loads_the_bridge_from_its_folder_alone(cache: Path) -> None:
    student = load(str(cache / f"bridge-{SIZE}"))
    assert student.preprocess_cfg["mean"] == [0.5, 0.5, 0.5]
    names = classifier(student, ("cat", "dog"), (PROMPT,))
    assert not torch.allclose(names[0], names[1])
    with torch.no_grad():
        assert student.encode_image(torch.zeros(2, 3, SIZE, SIZE)).shape == (2, WIDTH)


def test_a_run_goes_through_the_product_and_is_measured_once(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TASKS, "animals", replace(TASKS["animals"], steps=2))
    job = Job("animals", "TRACER", Setting(1e-3, 0.9), 0, Scale(("animals",), 1, SIZE, batch=8))
    workspace = Workspace(cache, tmp_path / "runs")
    monkeypatch.setattr("studies.photoshift.runner.remove", lambda path: None)
    measures = measured(workspace, job)
    assert 0 <= measures["agreement"] <= 1
    start, end = (
        read_weights(file)
        for file in (
            cache / f"bridge-{SIZE}" / WEIGHTS_FILE,
            workspace.runs / job.name / "weights/result.safetensors",
        )
    )
    means = [name for name in start if name.endswith("running_mean")]
    assert means
    assert all(torch.equal(start[name], end[f"clip.{name}"]) for name in means)
    assert not torch.equal(start["visual.head.proj.weight"], end["clip.visual.head.proj.weight"])
    assert set(measures["scores"]) == {"0.3", "0.6", "1"}
    monkeypatch.setattr("studies.photoshift.runner.carried", None)  # a second run would fail
    assert measured(workspace, job) == measures
    start = row(job._replace(arm=ZERO_SHOT), zero_shot(workspace, job))
    write(tmp_path / "rows.json", [start, row(job, measures)], "command")
    _, (before, after) = read(tmp_path / "rows.json")
    assert after.alphas == (0.0, 0.3, 0.6, 1.0)
    assert after.accuracy("vehicles", 0.0) == before.accuracy("vehicles")
    for measure in ("id", "ood", "corrupted", "retention"):
        (role,) = after.shifts(measure)
        assert len(after.ids(role)) == len(after.right(role)) > 0
    assert after.command.startswith("python -m studies.photoshift run 'animals' 'TRACER' --rate 0.001")


def test_training_held_out_and_test_pictures_are_apart(cache: Path) -> None:
    train, held_out = TASKS["animals"].training(cache, 1)
    (tested,) = [each.examples for each in suite_of("animals", cache).open() if each.shift.name == "task"]
    sets = [set(each.ids) for each in (train, held_out, tested)]
    assert sum(map(len, sets)) == len(set.union(*sets))
    assert set(train.labels) == set(held_out.labels) == set(range(6))
    again, _ = TASKS["animals"].training(cache, 1)
    assert again.fingerprint == train.fingerprint != TASKS["animals"].training(cache, 2)[0].fingerprint


def test_every_arm_has_as_many_tries() -> None:
    assert {len(arm.settings) for arm in ARMS} == {3}
    assert {len(arm.settings) for arm in VARIANTS} == {1}
    assert len(list(jobs(SCALES["quick"]))) == 2 * 2 * 3 * len(ARMS)
    names = [job.name for scale in ("full", "variants", "lengths") for job in jobs(SCALES[scale])]
    assert len(names) == len(set(names))


def test_the_arms_of_every_claim_are_run() -> None:
    assert {name for claim in (*CLAIMS, *FURTHER_CLAIMS) for name in claim.needs} <= ARM_OF.keys()


def test_a_stopped_study_has_seen_every_task_with_the_first_seeds() -> None:
    seeds = [job.seed for job in jobs(SCALES["full"])]
    assert seeds == sorted(seeds)


def test_a_package_with_another_hash_is_refused_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Package, "command", ["touch", "archive.tgz"])
    with pytest.raises(UserError, match="SHA-256"):
        unpacked(Package("npm", "x@1", "0" * 64), tmp_path / "x")
    assert not (tmp_path / "x").exists()


def answers(share: float, count: int, seed: int) -> dict[str, object]:
    right = np.random.default_rng(seed).permutation(np.arange(count) < round(share * count))
    return {"n": count, "right": packed_bits(right), "sure": packed_shares(np.full(count, 0.5))}


def made_up(arm: str, setting: Setting, seed: int, task: float, kept: float, start: float = 0.5) -> PhotoRow:
    """A run with these accuracies, half of the way to them at α = 0.5."""

    def scores(alpha: float) -> dict[str, object]:
        shares = {"task": start + alpha * (task - start), "vehicles": start + alpha * (kept - start)}
        sets = {"task": "id", "drawings": "ood", "vehicles": "retain", "task contrast 3": ""}
        return {
            name: {**answers(shares.get(name, 0.4), 200, seed), "role": role} for name, role in sets.items()
        }

    job = Job("animals", arm, setting, seed, SCALES["quick"])
    gap = {"step": [1], "kl": [1.0, 0.5], "weight_step": [], "weight_gap": []}
    alphas = {"1": scores(1.0)} if arm == ZERO_SHOT else {"0.5": scores(0.5), "1": scores(1.0)}
    measures: dict[str, Any] = {
        "validation": task,
        "cpu_seconds": 1.0,
        "commit": "c" * 40,
        "gap": gap,
        "agreement": kept,
    }
    measures["layers"] = {"block 1": 0.9, "block 2": kept} if job.layers else {}
    return row(job, {**measures, "scores": alphas})


@pytest.fixture(scope="module")
def rows() -> list[PhotoRow]:
    """Three seeds of every arm and setting; TRACER keeps more than the others."""
    runs = [made_up(ZERO_SHOT, Setting(0.0), seed, 0.5, 0.5) for seed in range(3)]
    for scale in ("quick", "variants", "carot"):
        for job in jobs(SCALES[scale]._replace(tasks=("animals",), seeds=3)):
            kept = 0.45 if job.arm == "TRACER" else 0.2
            runs.append(made_up(job.arm, job.setting, job.seed, 0.8, kept))
    return with_starts(runs)


def test_the_area_is_that_of_the_frontier_in_closed_form() -> None:
    runs = with_starts(
        [made_up(ZERO_SHOT, Setting(0.0), 0, 0.5, 0.5), made_up("FLYP", Setting(1e-4), 0, 0.8, 0.2)]
    )
    # (0.8, 0.4), (0.65, 0.7) and the start (0.5, 1): task accuracy, share kept of 0.5
    assert areas(runs[1:])[0] == pytest.approx(0.8 * 0.4 + 0.65 * 0.3 + 0.5 * 0.3)
    better = with_starts([runs[0], made_up("FLYP", Setting(1e-4), 0, 0.8, 0.75)])[1:]
    assert areas(better)[0] == pytest.approx(0.8 * 1.5)
    assert areas(better, most=1.0)[0] == pytest.approx(0.8)


def test_frontiers_are_compared_in_pairs(rows: list[PhotoRow]) -> None:
    arms = studies(rows)[ALL]
    gain = area_difference(arms["TRACER"], arms["FLYP"])  # pyright: ignore[reportArgumentType]
    assert gain.low > 0
    assert area_difference(arms["EMA"], arms["FLYP"]).value == 0  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="same tasks and seeds"):
        area_difference(arms["EMA"], arms["FLYP"][:3])  # pyright: ignore[reportArgumentType]
    assert pareto([(1, 3), (2, 2), (1, 2), (3, 0)]) == [(3, 0), (2, 2), (1, 3)]


def test_the_setting_is_chosen_by_held_out_pictures(rows: list[PhotoRow]) -> None:
    own = [each._replace(validation=0.9 if each.rate == 1e-4 else 0.5) for each in rows if each.arm == "FLYP"]
    assert {each.rate for each in chosen(own)} == {1e-4}
    assert {each.rate for each in studies(rows)[ONE]["FLYP"]} == {3e-4}


def test_variants_are_compared_with_tracer_on_the_same_trials(rows: list[PhotoRow]) -> None:
    few = [each for each in rows if each.seed < 2 or each.arm != VARIANTS[0].name]
    arms = studies(few)[VARIED]
    assert set(map(len, arms.values())) == {2}
    assert arms.keys() == {"TRACER", *(arm.name for arm in VARIANTS)}
    assert {(each.rate, each.strength) for each in arms["TRACER"]} == {(3e-4, 0.9)}
    varied = {arm.name for arm in VARIANTS}
    assert studies([each for each in rows if each.arm not in varied])[VARIED] == {}


def test_other_lengths_of_training_have_no_part_in_the_verdicts(rows: list[PhotoRow]) -> None:
    longer = [each._replace(study="long animals", fold=list(TASKS).index("long animals")) for each in rows]
    arms = studies([*rows, *longer])
    assert all(arms[name] == studies(rows)[name] for name in (ONE, CHOSEN, ALL))
    assert dict(moving_gains([*rows, *longer])).keys() == {"animals", "long animals"}


def test_the_page_has_every_verdict_and_area(rows: list[PhotoRow]) -> None:
    head = {"command": "c", "date": "d", "versions": {"torch": "2"}, "commit": "0123456789"}
    text, tables = page(rows, "tables.md"), tables_page(head, rows, "page.md")
    assert "| TRACER and a static teacher forget less than L2-SP |" in text
    assert "*holds partly" in text
    assert "not tested yet" not in text
    assert all(claim.text in text and claim.text in tables for claim in (*CLAIMS, *FURTHER_CLAIMS))
    assert "63 of 735 runs of `full`" in tables
    assert len(frontiers(rows).axes) >= 1
    assert len(moving_teachers(dict(moving_gains(rows))).axes) == 4
    both = side_by_side({}, studies(rows), CLAIMS)
    assert both.count("not tested yet") == len(CLAIMS)  # of EmojiShift, which has no rows here
    assert studies(rows)[CHOSEN]["TRACER"]


@pytest.mark.parametrize("images", [0, -5])
def test_a_build_that_scores_nothing_is_refused(images: int, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"--images {images} is too small: give 1 or more"):
        build(tmp_path / "cache", images=images)
    assert not list(tmp_path.iterdir())
