"""Builds the learner of a stage: students, teachers, regularizers, optimisers and batches."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import torch

from tracer.core.objective import Objective
from tracer.core.shadow import Shadow
from tracer.core.teachers import Frozen
from tracer.core.weights import Weights
from tracer.data.checking.texts import unread
from tracer.data.features import decoded
from tracer.data.loader import Batches
from tracer.data.transforms import Transform
from tracer.methods.base import Method, Stage
from tracer.models.acceleration import class_token_only, compile_towers, save_memory
from tracer.models.open_clip_compat import open_clip
from tracer.models.prefix import share_prefix
from tracer.models.student import MAX_LOG_SCALE, Student
from tracer.models.token_count import TokenCount
from tracer.models.towers import without_projection
from tracer.models.trainable import All, HeadOnly
from tracer.parallel import World
from tracer.runs.plan import Plan
from tracer.training.learner import Learner, ReplicatedLearner, step_seed
from tracer.training.optim import Schedule, adamw
from tracer.training.step import State


def decode_scored_images(plan: Plan, model: Student, world: World, workers: int) -> Plan:
    """The plan with the images that are scored several times in memory, if they fit and one process scores them."""
    if world.size > 1:
        return plan
    held_out, *retain = decoded([plan.held_out, *plan.retain], model.preprocess_cfg, workers)
    return replace(plan, held_out=held_out, retain=tuple(retain))


def build_learner(
    plan: Plan, stage: Stage, steps: int, student: Student, pretrained: Weights, world: World
) -> Learner:
    """The learner of a stage of `steps` steps, before the first. It trains `student` itself, not a copy."""
    experiment, replicas, stage = plan.experiment, plan.method.replicas, fit(stage, student)
    if "scores" in stage.objective.needs and student.head is None:
        head = stage.head(student, plan.train, plan.templates, world, experiment.seed)
        student.head = head.to(world.device, student.mean.dtype)
    prepare(plan, stage, student, steps)
    student.remember_texts(not world.sharded)  # sharded weights are gathered for whole batches only
    students = [student, *(deepcopy(student) for _ in range(replicas.count - 1 if replicas else 0))]
    states = [_state(plan, stage, steps, each, pretrained, world) for each in students]
    data = [_batches(plan, state, replica) for replica, state in enumerate(states)]
    if replicas:
        return ReplicatedLearner(states, data, experiment.seed, replicas)
    return Learner(states[0], data[0], experiment.seed)


def fit(stage: Stage, student: Student) -> Stage:
    """The stage, without its penalties on the towers' projections if the model has none."""
    if "projections" not in stage.objective.needs or not without_projection(student.clip):
        return stage
    terms = ((weight, term) for weight, term in stage.objective.weighted if "projections" not in term.needs)
    return replace(stage, minimise=Objective(tuple(terms)))


def notices(method: Method, student: Student) -> list[str]:
    """What of a method does not apply to this model, and which part of the model is not trained."""
    messages = []
    if "projections" in method.needs and (towers := without_projection(student.clip)):
        messages.append(
            f"the penalty on the projections is left out: the {' and the '.join(towers)} tower of {student.name} "
            "ends without a linear projection"
        )
    if isinstance(student.clip, open_clip.CoCa) and method.stages:
        messages.append(f"the text decoder of {student.name} is not trained: no loss here depends on it")
    return messages


def text_notices(plan: Plan, student: Student) -> list[str]:
    """What the model cuts of the captions that it learns from or is scored on, and of the prompts."""
    tokens = TokenCount(student.tokeniser.tokeniser, student.name)
    captions = "text" in plan.method.needs or not plan.method.stages or not plan.train.labelled
    return unread(tokens, plan.train, plan.templates, captions)


def prepare(plan: Plan, stage: Stage, student: Student, steps: int) -> None:
    """Put a student in train mode, with the trainable parameters of a stage, those of the adapter included."""
    experiment, policy = plan.experiment, stage.policy(steps)
    stage.tune(student)
    student.frozen_statistics |= experiment.batchnorm == "keep"
    if plan.adapter is not None:
        averaged = not isinstance(policy, Frozen | None) or plan.method.replicas is not None
        plan.adapter.attach(student, averaged=averaged, seed=experiment.seed)
    student.train()
    save_memory(student, chunk=experiment.chunk, checkpointing=experiment.checkpointing)
    class_token_only(student, not stage.objective.needs & {"features", "tokens"})


def shares(plan: Plan, stage: Stage) -> bool:
    """Whether a teacher may use what a student has computed; its chunks of every k-th pair are not the student's."""
    return not plan.experiment.compile and (stage.distill_pairs == 1 or plan.experiment.chunk is None)


def check_trainable(plan: Plan, model: Student) -> None:
    """Raise UserError if what is to be trained or adapted is not there, or memory cannot be saved as asked."""
    experiment, mode = plan.experiment, model.training
    for stage in plan.method.stages:
        head_only = isinstance(stage.tune, HeadOnly)
        if not head_only:
            stage.tune(model)
            if plan.adapter is not None:
                plan.adapter.targets(model)
        # The statistics are as `prepare` leaves them; an adapter freezes the towers.
        model.frozen_statistics |= head_only or plan.adapter is not None or experiment.batchnorm == "keep"
        save_memory(model.train(), chunk=experiment.chunk, checkpointing=experiment.checkpointing)
    All()(model)
    if experiment.checkpointing:
        model.clip.set_grad_checkpointing(False)
    model.train(mode)


def first_stage(plan: Plan, world: World, steps: int | None = None) -> Learner:
    """The learner of a plan's first stage, without a run, for benchmarks and tests of single steps."""
    model = plan.experiment.pretrained_model()
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    return build_learner(plan, plan.method.stages[0], steps or plan.steps, model, weights, world)


def _state(
    plan: Plan, stage: Stage, steps: int, student: Student, pretrained: Weights, world: World
) -> State:
    experiment, policy, regularizer = plan.experiment, stage.policy(steps), None
    # CLIP's bound, ln 100, or the pretrained scale where that is higher, as in SigLIP.
    max_log_scale = max(MAX_LOG_SCALE, float(pretrained["clip.logit_scale"].max()))
    shadow = Shadow(student, policy, steps=steps, buffers=stage.buffers) if policy else None
    world.prepare(student, shadow)
    if experiment.compile:
        compile_towers(student, *([shadow.model] if shadow else []))
    if stage.regularizer is not None:
        trainable = {name: p for name, p in student.named_parameters() if p.requires_grad}
        anchors = {name: pretrained.get(name, p.detach()) for name, p in trainable.items()}
        regularizer = world.attach(stage.regularizer, trainable, anchors)
    return State(
        stage=stage,
        student=student,
        shadow=shadow,
        optimiser=adamw(student, experiment.decay, experiment.decay_on),
        regularizer=regularizer,
        schedule=Schedule(experiment.lr * stage.rate, min(plan.warmup, steps - 1), steps),
        world=world,
        clip=experiment.clip,
        max_log_scale=max_log_scale if experiment.clamp_scale else None,
        prefix=share_prefix(student, shadow.model, stage.distill_pairs)
        if shadow and shares(plan, stage)
        else None,
        chunk=experiment.chunk,
    )


def _batches(plan: Plan, state: State, replica: int) -> Batches:
    """Training batches of one replica, with the probe texts and anchor pairs that the stage needs."""
    experiment, stage, student = plan.experiment, state.stage, state.student
    needs = stage.objective.needs
    probe = None
    if stage.probe and "probe" in needs:
        with torch.no_grad():
            probe = state.world.forward(stage.probe.prepare, student, plan.train.classes)
    common: dict[str, Any] = {
        "seed": experiment.seed if replica == 0 else step_seed(experiment.seed, replica << 40),
        "transform": Transform(
            student.preprocess_cfg, experiment.augment, drafts=experiment.decode == "draft"
        ),
        "templates": plan.templates,
        "rank": state.world.rank,
        "ranks": state.world.size,
    }
    anchors = None
    if plan.anchors is not None and "anchors" in needs:
        size = min(plan.batch, len(plan.anchors))  # divides among the processes, as the batch does
        anchors = Batches(plan.anchors, batch=size, tokeniser=student.tokeniser, **common)
    tokeniser = student.tokeniser if "text" in needs else None
    return Batches(plan.train, batch=plan.batch, tokeniser=tokeniser, probe=probe, anchors=anchors, **common)
