"""The memory that `--dry-run` announces is the memory that a run takes."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from studies.bench import peak
from tracer.core.batch import Scene
from tracer.models.acceleration import save_memory
from tracer.models.gradient_cache import embed_both
from tracer.models.student import load
from tracer.parallel import World
from tracer.runs.experiment import Experiment
from tracer.runs.plan import Plan, plan
from tracer.training.estimate import estimate
from tracer.training.setup import first_stage
from tracer.training.simulation import AllocationCounter, sample_batch, step_bytes


def planned(**settings: object) -> Plan:
    common = {"data": "digits", "model": "tiny-28", "pretrained": "none", "steps": 2, "augment": "none"}
    return plan(Experiment(**{**common, "method": "tracer", "batch": 64, **settings}))  # pyright: ignore[reportArgumentType]


def test_a_counter_counts_what_is_alive_once() -> None:
    there = torch.zeros(1000)
    with AllocationCounter([there]) as counter:
        first = there + 1
        assert counter.current == 4000
        view = first.view(10, 100)  # the same bytes
        second = view * 2
        assert counter.current == 8000
        there.add_(1)  # was there before
        del first, view
        assert counter.current == 4000
        del second
    assert (counter.current, counter.peak) == (0, 8000)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"chunk": 32},
        {"checkpointing": True},
        {"options": {"distill_pairs": 4}},
        {"options": {"distill_pairs": 4}, "chunk": 8},
    ],
)
def test_the_simulated_step_takes_what_a_real_one_takes(settings: dict[str, Any]) -> None:
    made = planned(**settings)
    stage, chunk = made.method.stages[0], made.experiment.chunk
    student = load("tiny-28")
    stage.tune(student)
    save_memory(student.train(), chunk=chunk, checkpointing=made.experiment.checkpointing)
    batch = sample_batch(made, stage, student, 64)
    simulated = step_bytes(made, stage, student)
    teacher = torch.no_grad()(student)
    with AllocationCounter([*student.parameters(), *student.buffers(), batch.image]) as counter:
        shown = batch.every(stage.distill_pairs)
        seen, taught = embed_both(student, teacher, batch, stage.objective.needs, chunk, None, shown)
        stage.objective(Scene(seen, taught, batch.label)).total.backward()
    assert simulated is not None
    assert simulated == pytest.approx(counter.peak + batch.image.numel(), rel=0.01)


@pytest.mark.parametrize(
    "settings",
    [
        {"adapter": "lora"},
        {"adapter": "prompts"},
        {"options": {"tune": "image"}},
        {"options": {"tune": "last-1"}},
        {"options": {"tune": "last-1"}, "adapter": "lora"},
        {"options": {"tune": "last-1", "distill_pairs": 4}},
        {"options": {"tune": "last-1", "distill_pairs": 4}, "chunk": 16},
    ],
    ids=["lora", "prompts", "image", "last", "last and lora", "last and pairs", "last, pairs and chunks"],
)
def test_the_estimate_knows_what_is_frozen_and_shared(settings: dict[str, Any]) -> None:
    """The teacher's own tensors, the trained parameters, and a step with a prefix that is computed once."""
    settled = planned(**settings)
    predicted, learner = estimate(settled), first_stage(settled, World("cpu", "fp32"))
    state, needs = learner.state, learner.state.stage.objective.needs
    assert state.shadow is not None
    trained = {name: p for name, p in state.student.named_parameters() if p.requires_grad}
    own = state.shadow.state_dict()["model"]
    assert predicted.trainable == sum(p.numel() for p in trained.values())
    assert predicted.teacher == sum(own[name].nbytes for name in trained)
    assert not own.keys() & (dict(state.student.named_parameters()).keys() - trained.keys())
    assert predicted.optimiser == 2 * predicted.teacher < 4 * predicted.parameters
    batch = sample_batch(settled, state.stage, state.student, 64)
    excluded = [*state.student.parameters(), *state.student.buffers()]
    excluded += [*state.shadow.model.parameters(), *state.shadow.model.buffers(), batch.image]
    with AllocationCounter(excluded) as counter:
        shown = batch.every(state.stage.distill_pairs)
        embeddings = embed_both(state.student, state.shadow, batch, needs, state.chunk, state.prefix, shown)
        state.stage.objective(Scene(*embeddings, batch.label)).total.backward()
    assert predicted.step == pytest.approx(counter.peak + batch.image.numel(), rel=0.02)
    assert (state.prefix is not None) == ("last-1" in str(settings) and state.chunk is None)


def test_a_teacher_of_fewer_pairs_is_announced_to_take_less() -> None:
    """Where the step's peak is the teacher's: a student that keeps little for its backward."""
    sizes = [
        estimate(planned(batch=512, adapter="prompts", options={"tune": "image", "distill_pairs": k})).step
        for k in (1, 8)
    ]
    assert sizes[0] is not None
    assert sizes[1] is not None
    assert sizes[1] < sizes[0]


def test_chunks_and_checkpoints_take_less_and_a_batch_in_chunks_takes_what_two_of_them_take() -> None:
    def taken(**settings: int | bool) -> int:
        found = estimate(planned(batch=512, **settings)).step
        assert found is not None
        return found

    plain, chunked, recomputed = taken(), taken(chunk=32), taken(checkpointing=True)
    assert chunked < plain / 2
    assert recomputed < plain / 2
    weights = 4 * estimate(planned()).parameters
    assert chunked > weights  # gradients are whole from the second chunk on


@pytest.mark.slow  # a process's size is measured by the system, which a busy machine may page out
def test_what_is_announced_is_within_a_fifth_of_what_is_measured() -> None:
    """Each in a process of its own, as a user runs them; the batch is large enough to outweigh the libraries."""
    predicted, taken = (peak.in_new_process(each, "tiny-28", 1024) for each in (peak.predicted, peak.taken))
    assert predicted == pytest.approx(taken, rel=0.2), predicted / taken
