"""Reference and our code compute the same, and times are taken in both orders. Nothing is timed here."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import pytest
import torch
from closeness import bound, length, same, smooth_steps

from studies.bench.command import main
from studies.bench.heads import theirs
from studies.bench.page import page
from studies.bench.peak import in_new_process
from studies.bench.plain import Plain, distillation
from studies.bench.prediction import prediction, sweep
from studies.bench.records import Row, machine, read, section, write
from studies.bench.steps import CLASSES, batch_of, captions, chunk_gap, state_of
from studies.bench.timing import Timer, Times
from tracer.core.batch import Embedding, Scene
from tracer.core.errors import UserError
from tracer.core.shadow import Shadow
from tracer.core.teachers import EMA
from tracer.core.terms import cross, feature, interactive, relational
from tracer.methods.base import method
from tracer.models.open_clip_compat import open_clip
from tracer.models.prompts import templates
from tracer.models.student import Student, load
from tracer.models.zero_shot import zero_shot
from tracer.training.estimate import resident
from tracer.training.optim import Schedule, adamw
from tracer.training.step import step


def test_work_is_timed_in_both_orders() -> None:
    order: list[str] = []
    Timer(rounds=2)({name: lambda name=name: order.append(name) for name in "ab"}, warmup=1)
    assert order == ["a", "b", "b", "a", "a", "b"]


def test_a_ratio_is_the_median_of_rounds_not_the_ratio_of_medians() -> None:
    times = Times({"ours": [1.0, 10.0, 3.0], "theirs": [2.0, 10.0, 1.0]})
    assert times.ratio("ours", "theirs") == 1.0  # of ½, 1 and 3


def test_the_plain_distillation_is_ours() -> None:
    generator = torch.Generator().manual_seed(0)
    parts = [torch.nn.functional.normalize(torch.randn(5, 16, generator=generator), dim=1) for _ in range(4)]
    student = Embedding(parts[0], parts[1], torch.tensor(20.0))
    teacher = Embedding(parts[2], parts[3], torch.tensor(15.0))
    ours = 2000 / 16 * feature() + 0.5 * relational() + interactive("pair") + cross()
    loss = distillation(parts[0], parts[1], torch.tensor(20.0), parts[2], parts[3], torch.tensor(15.0))
    same(loss, ours(Scene(student, teacher)).total, sums=100)


@pytest.mark.parametrize(
    ("name", "options"), [("flyp", {}), ("tracer", {"feature": 2000 / 128, "frobenius": 0.0})]
)
def test_plain_steps_and_ours_learn_the_same(name: str, options: dict[str, float]) -> None:
    """Losses of three steps and the weights behind them, in float64."""
    student, twin = (load("tiny-28", seed=3).double() for _ in range(2))
    batch, lr = batch_of(student, 6), 1e-3
    plain = Plain(twin.clip, open_clip.loss.ClipLoss(), lr=lr, decay=0)
    for group in plain.optimiser.param_groups:
        group["eps"] = 1.0
    images = (batch.image.double() / 255 - student.mean) / student.std
    tokens = twin.tokeniser.tokeniser(captions(6))
    state = state_of(method(name, targets="pair", **options).stages[0], student)
    with smooth_steps():
        state.optimiser, state.schedule = adamw(student, decay=0), Schedule(lr, 1, 10**9)
    if state.shadow:
        state.shadow = Shadow(student, EMA(momentum=0.99), steps=3)
    for _ in range(3):
        expected = getattr(plain, name)(images, tokens)
        same(step(state, batch).total, expected, length(student), size=float(student.scale.detach()))
    same(student.clip.state_dict(), twin.clip.state_dict(), length(student))


def test_the_plain_teacher_moves_as_ours(student: Student) -> None:
    plain = Plain(student.clip, None)
    before = plain.teacher.visual.proj.clone()
    with torch.no_grad():
        student.clip.visual.proj += 1
    plain.follow(0.25)
    same(plain.teacher.visual.proj, before + 0.25, sums=1)


def test_heads_agree(student: Student) -> None:
    prompts = templates("openai")[:7]
    same(zero_shot(student, CLASSES, prompts), theirs(student.eval(), CLASSES, prompts), length(student))


def test_every_way_to_score_is_timed_and_scores_as_a_plain_loop_does(tmp_path: Path) -> None:
    times, gap = prediction("tiny-28", tmp_path / "scored", Timer(1), count=3)
    assert times.seconds.keys() == {"a plain loop", "ours", "two passes", "one pass"}
    assert gap < bound(length(load("tiny-28")), 20, torch.float32)  # of logits
    assert sweep("tiny-28", tmp_path / "swept", Timer(1), count=2).seconds.keys() == {
        "a model for each α",
        "one model",
    }


def test_the_page_names_the_machine_s_kind_and_not_the_machine() -> None:
    text = page({"Steps": section([Row("a step", 0.5, "1 s", "2 s", (0.0, 1.0))], rounds=3)})
    assert "| a step | 0.50 |  | ≤ 1 | 1 s | 2 s |" in text
    assert machine() in text
    assert platform.node() not in text


@pytest.mark.parametrize(("ratio", "met"), [(0.7, False), (0.8, True), (1.2, True), (1.3, False)])
def test_a_target_that_is_missed_says_so(ratio: float, met: bool) -> None:
    text = page({"Memory": section([Row("an estimate", ratio, "1", "1", (0.8, 1.2))], rounds=1)})
    assert ("| **no** |" in text) == ("missed" in text) == (not met)
    assert "0.80 … 1.20" in text


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    sections = {
        "Steps": section([Row("a", 0.5, "1 s", "2 s", (0.0, 1.0), "0.4 … 0.6"), Row("b", 2, "", "")], 3)
    }
    write(tmp_path / "new" / "results.json", sections)
    assert read(tmp_path / "new" / "results.json") == sections
    assert read(tmp_path / "absent.json") == {}
    (tmp_path / "other.json").write_text('{"loss": 1}')
    with pytest.raises(UserError, match=r"other\.json"):
        read(tmp_path / "other.json")


def test_the_command_writes_a_page_that_keeps_what_earlier_runs_measured(tmp_path: Path) -> None:
    out, results = tmp_path / "benchmarks.md", tmp_path / "results.json"
    arguments = ["--models", "tiny-28", "--batch", "4", "--rounds", "1", "--out", str(out)]
    arguments += ["--results", str(results)]
    assert main([*arguments, "--only", "steps", "teacher"]) == 0
    assert main([*arguments, "--only", "chunks", "chunks"]) == 0
    text = out.read_text()
    for what in ("FLYP step", "TRACER over FLYP, ours", "one flat lerp", "batch 4 in chunks of 2"):
        assert what in text
    assert len(read(results)) == 3


def test_chunks_and_the_whole_batch_have_one_gradient() -> None:
    assert chunk_gap("tiny-28", 6, 2) < bound(length(load("tiny-28")), dtype=torch.float32)


@pytest.mark.slow  # starts Python with a model of some size
def test_a_process_measures_its_own_memory_and_not_its_parent_s() -> None:
    ballast = torch.ones(200 * 2**20 // 4)  # 200 MiB, touched
    assert in_new_process(resident) < resident() - ballast.nbytes // 2


def test_a_measurement_that_is_killed_is_named() -> None:
    with pytest.raises(UserError, match=r"abort\(\) was killed: is there enough memory"):
        in_new_process(os.abort)
