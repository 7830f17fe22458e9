"""How much memory a run will take, before it takes it."""

from __future__ import annotations

import resource
import sys
from dataclasses import dataclass
from pathlib import Path

import torch

from tracer.methods.base import Stage
from tracer.models.acceleration import end_early, save_memory
from tracer.models.student import Head, Student, load
from tracer.runs.plan import Plan
from tracer.training.memory.simulation import step_bytes

# Freed blocks lie between live ones and cannot be given back. Of what a step takes, glibc's allocator held 46 %
# more for a tiny model at batch 1024 and 23 % more for ViT-B-16 at batch 8; with each block mapped by itself, 5 %.
SCATTERED = 0.25


@dataclass(frozen=True)
class Estimate:
    """Bytes by purpose, for one process that computes in fp32."""

    parameters: int
    trainable: int
    process: int  # libraries, and data that lie in memory
    weights: int
    teacher: int
    pretrained: int  # kept for merging, regularizers and the report
    optimiser: int
    step: int | None  # gradients and activations where they are most; None for a model that defies simulation

    @property
    def total(self) -> int:
        """All that is in memory at the peak."""
        held = self.process + self.weights + self.teacher + self.pretrained + self.optimiser
        return held + (self.step or 0) + self.allocator

    @property
    def allocator(self) -> int:
        """What is free and yet not given back."""
        return round(SCATTERED * (self.step or 0))

    def lines(self) -> list[tuple[str, str]]:
        """What `--dry-run` shows."""
        rows = [("parameters", f"{self.parameters:,}"), ("trainable parameters", f"{self.trainable:,}")]
        told = {"process": "libraries and data", "step": "gradients and activations"}
        for part in (
            "process",
            "weights",
            "teacher",
            "pretrained",
            "optimiser",
            "step",
            "allocator",
            "total",
        ):
            size: int | None = getattr(self, part)
            shown = "unknown" if size is None else f"{size / 2**30:.2f} GiB"
            rows.append((f"memory: {told.get(part, part)}", shown))
        return rows


def estimate(plan: Plan) -> Estimate:
    """Build the model, without downloading its weights, and see what its hungriest stage will hold."""
    process = resident()
    student = load(plan.experiment.model, None, seed=0)
    weights = 4 * sum(p.numel() for p in student.parameters())
    idle = Estimate(weights // 4, 0, process, weights, 0, 0, 0, 0)
    found = [_of(plan, stage, student, idle) for stage in plan.method.stages if stage.share]
    return max(found, key=lambda each: each.total, default=idle)


def _of(plan: Plan, stage: Stage, student: Student, idle: Estimate) -> Estimate:
    if "scores" in stage.objective.needs:
        student.head = Head(torch.zeros(len(plan.train.classes), student.config["embed_dim"]))
    stage.tune(student)
    student.train()
    save_memory(student, chunk=plan.experiment.chunk, checkpointing=plan.experiment.checkpointing)
    end_early(student, "features" not in stage.objective.needs)
    trainable = sum(p.numel() for p in student.parameters() if p.requires_grad)
    replicas = plan.method.replicas.count if plan.method.replicas else 1
    copies = stage.regularizer.copies if stage.regularizer else 0
    return Estimate(
        parameters=idle.parameters,
        trainable=trainable,
        process=idle.process,
        weights=replicas * idle.weights,
        teacher=replicas * idle.weights if stage.teacher else 0,
        pretrained=idle.weights * (1 + (replicas > 1)) + 4 * trainable * copies * replicas,
        optimiser=8 * trainable * replicas,
        step=step_bytes(plan, stage, student),
    )


def resident() -> int:
    """Bytes of memory that this process has had at most so far."""
    status = Path("/proc/self/status")  # what `getrusage` says begins with what a parent had
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return 1024 * int(line.split()[1])
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
