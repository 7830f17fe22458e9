"""The memory and the time of training, as `tracer train --dry-run` estimates them."""

from __future__ import annotations

import resource
import sys
import time
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import torch

from tracer.core.batch import Scene
from tracer.data.features import MOST_BYTES, decoded_bytes
from tracer.methods.base import Stage
from tracer.models.gradient_cache import embed_both
from tracer.models.student import Head, Student
from tracer.parallel import World
from tracer.runs.plan import Plan
from tracer.training.setup import fit, prepare
from tracer.training.simulation import sample_batch, step_bytes

# Fragmentation: memory that is freed but not returned to the system, relative to what a step takes. Measured with
# glibc's allocator: 46 % for a tiny model at batch 1024, 23 % for ViT-B-16 at batch 8; 5 % if every block is mmapped.
FRAGMENTATION = 0.25

FIRST = 4  # images that are timed first; then four times as many, up to a batch,
LONG = 1.0  # until a step takes so many seconds


@dataclass(frozen=True)
class Estimate:
    """Bytes by purpose, for one process in fp32."""

    parameters: int
    trainable: int
    process: int  # libraries, and data held in memory
    weights: int
    teacher: int
    pretrained: int  # copies for merging, regularizers and the summary
    optimiser: int
    step: int | None  # gradients and activations at their peak; None if the model cannot be simulated

    @property
    def total(self) -> int:
        """Bytes at the peak."""
        constant = self.process + self.weights + self.teacher + self.pretrained + self.optimiser
        return constant + (self.step or 0) + self.allocator

    @property
    def allocator(self) -> int:
        """Memory lost to fragmentation."""
        return round(FRAGMENTATION * (self.step or 0))

    def lines(self) -> list[tuple[str, str]]:
        """Names and values that `--dry-run` shows."""
        rows = [("parameters", f"{self.parameters:,}"), ("trainable parameters", f"{self.trainable:,}")]
        labels = {"process": "libraries and data", "step": "gradients and activations"}
        parts = ("process", "weights", "teacher", "pretrained", "optimiser", "step", "allocator", "total")
        for part in parts:
            size: int | None = getattr(self, part)
            amount = "unknown" if size is None else f"{size / 2**30:.2f} GiB"
            rows.append((f"memory: {labels.get(part, part)}", amount))
        return rows


def estimate(plan: Plan) -> Estimate:
    """The estimate of the stage that needs most memory. Builds the model, without downloading its weights."""
    process = resident()
    student = plan.experiment.pretrained_model(random=True)
    pixels = decoded_bytes([plan.held_out, *plan.retain], student.preprocess_cfg)
    process += pixels if pixels <= MOST_BYTES else 0
    weights = 4 * sum(p.numel() for p in student.parameters())
    idle = Estimate(weights // 4, 0, process, weights, 0, 0, 0, 0)
    stages = [_stage(plan, stage, student, idle) for stage in plan.method.stages if stage.share]
    return max(stages, key=lambda each: each.total, default=idle)


def prepared(plan: Plan, stage: Stage, student: Student) -> tuple[Stage, Student]:
    """A stage that fits the student, and the student as it trains in it."""
    stage = fit(stage, student)
    if "scores" in stage.objective.needs:
        student.head = Head(torch.zeros(len(plan.train.classes), student.config["embed_dim"]))
    if plan.adapter is not None:
        student = deepcopy(student)  # the next stage has adapters of its own
    prepare(plan, stage, student, plan.steps)
    return stage, student


def _stage(plan: Plan, stage: Stage, student: Student, idle: Estimate) -> Estimate:
    stage, student = prepared(plan, stage, student)
    trainable = sum(p.numel() for p in student.parameters() if p.requires_grad)
    replicas = plan.method.replicas.count if plan.method.replicas else 1
    copies = stage.regularizer.copies if stage.regularizer else 0
    return Estimate(
        parameters=sum(p.numel() for p in student.parameters()),
        trainable=trainable,
        process=idle.process,
        weights=replicas * idle.weights,
        teacher=4 * trainable * replicas if stage.teacher else 0,  # it shares what is frozen
        pretrained=idle.weights * (1 + (replicas > 1)) + 4 * trainable * copies * replicas,
        optimiser=8 * trainable * replicas,
        step=step_bytes(plan, stage, student),
    )


def resident() -> int:
    """Peak resident memory of this process so far, in bytes."""
    status = Path("/proc/self/status")  # preferred: `getrusage` includes the peak of the parent process
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return 1024 * int(line.split()[1])
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def training_seconds(plan: Plan, device: str, precision: str = "auto") -> float:
    """Seconds of forward and backward passes over all steps, without reading data, evaluating and saving."""
    world = World(device, precision)
    student = plan.experiment.pretrained_model(random=True)
    replicas = plan.method.replicas.count if plan.method.replicas else 1
    seconds = 0.0
    for stage in plan.method.stages:
        if stage.share:
            seconds += stage.share * _step(plan, *prepared(plan, stage, student), world)
    return replicas * plan.steps * seconds


def _step(plan: Plan, stage: Stage, student: Student, world: World) -> float:
    """Seconds of one step of a whole batch."""
    world.place(student)
    count = min(plan.batch, FIRST)
    _seconds(plan, stage, student, world, count)  # the first step is slower
    while (seconds := _seconds(plan, stage, student, world, count)) < LONG and count < plan.batch:
        count = min(plan.batch, 4 * count)
    return seconds * plan.batch / count


def _seconds(plan: Plan, stage: Stage, student: Student, world: World, count: int) -> float:
    """Seconds of a forward and backward pass of this many blank images and their texts."""
    batch = world.to_device(sample_batch(plan, stage, student, count))
    teacher = torch.no_grad()(student) if "teacher" in stage.objective.needs else None  # of the same size
    start = time.perf_counter()
    with world.autocast():
        both = embed_both(student, teacher, batch, stage.objective.needs, plan.experiment.chunk)
    loss = stage.objective(world.gather(Scene(*both, batch.label))).total
    loss.backward()
    loss.item()  # waits for the device
    return time.perf_counter() - start
