"""The benchmark compares like with like, and counts turns fairly. Nothing here is timed."""

from __future__ import annotations

from pathlib import Path

import torch

from tracer.batch import Embedding, Scene
from tracer.bench.heads import theirs
from tracer.bench.page import Row, machine, page
from tracer.bench.plain import Plain, distillation
from tracer.bench.steps import CLASSES, batch_of, captions, state_of
from tracer.bench.turns import Times, in_turns
from tracer.classifier import zero_shot
from tracer.clip import open_clip
from tracer.commands.bench import main
from tracer.data.prompts import templates
from tracer.method import method
from tracer.model import Student, load
from tracer.step import step
from tracer.terms import cross, feature, interactive, relational


def test_turns_run_in_both_orders() -> None:
    order: list[str] = []
    in_turns({name: lambda name=name: order.append(name) for name in "ab"}, rounds=2, warmup=1)
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
    found = distillation(parts[0], parts[1], torch.tensor(20.0), parts[2], parts[3], torch.tensor(15.0))
    assert torch.allclose(found, ours(Scene(student, teacher)).total, rtol=1e-5)


def test_a_plain_flyp_step_and_ours_learn_the_same(student: Student) -> None:
    twin = load("tiny-28", seed=3)
    batch = batch_of(student, 6)
    plain = Plain(twin.clip, open_clip.loss.ClipLoss())
    images = (batch.image.float() / 255 - student.mean) / student.std
    tokens = twin.tokeniser.tokeniser(captions(6))
    theirs_loss = plain.flyp(images, tokens)
    loss = step(state_of(method("flyp", targets="pair").stages[0], student), batch)
    assert abs(theirs_loss - float(loss.total.detach())) < 1e-5


def test_the_plain_teacher_moves_as_ours(student: Student) -> None:
    plain = Plain(student.clip, None)
    before = plain.teacher.visual.proj.clone()
    with torch.no_grad():
        student.clip.visual.proj += 1
    plain.follow(0.25)
    assert torch.allclose(plain.teacher.visual.proj, before + 0.25)


def test_heads_agree_to_a_millionth(student: Student) -> None:
    prompts = templates("openai")[:7]
    gap = zero_shot(student, CLASSES, prompts) - theirs(student.eval(), CLASSES, prompts)
    assert float(gap.abs().max()) < 1e-6


def test_the_page_names_the_machine_s_kind_and_not_the_machine() -> None:
    import platform

    told = page({"Steps": [Row("a step", 0.5, "1 s", "2 s", "≤ 1")]})
    assert "| a step | 0.50 |  | ≤ 1 | 1 s | 2 s |" in told
    assert machine() in told
    assert platform.node() not in told


def test_the_command_writes_a_page(tmp_path: Path) -> None:
    out = tmp_path / "benchmarks.md"
    arguments = ["--models", "tiny-28", "--batch", "4", "--rounds", "1", "--out", str(out)]
    assert main([*arguments, "--only", "steps", "teacher", "chunks"]) == 0
    told = out.read_text()
    for what in ("FLYP step", "TRACER over FLYP, ours", "one flat lerp", "batch 8 in chunks of 4"):
        assert what in told
