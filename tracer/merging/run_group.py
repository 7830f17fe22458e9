"""Runs that can be merged: equal architecture, tokenizer, classes and pretrained weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch

from tracer.core.errors import UserError
from tracer.core.weights import Weights
from tracer.methods.heads import ZeroShot
from tracer.models.student import Head, Student
from tracer.parallel import World
from tracer.runs.plan import Plan, plan
from tracer.runs.run import Run

TOKENIZER = ("vocab_size", "context_length", "hf_tokenizer_name", "tokenizer_kwargs", "tokenizer_mode")


class RunGroup(NamedTuple):
    """Runs with the same pretrained model, and the weights of each."""

    runs: tuple[Run, ...]
    plan: Plan  # of the first
    student: Student
    start: Weights  # pretrained, with the zero-shot head if the runs have a head
    ends: dict[str, Weights]
    weights: str = "result"  # which of the runs

    @property
    def end(self) -> Weights:
        """The weights of the only run."""
        (end,) = self.ends.values()
        return end


def run_group(runs: Sequence[Run], weights: str = "result") -> RunGroup:
    """Load the weights of runs; an error names two runs that cannot be merged."""
    first, *others = runs
    student = first.student("pretrained")
    pretrained = {name: tensor.clone() for name, tensor in student.state_dict().items()}
    ends = {str(first.folder): first.stored_weights(weights)}
    for other in others:
        if str(other.folder) in ends:
            raise UserError(f"{other.folder} is given twice")
        _check_classes(first, other)
        other_student = other.student("pretrained")
        _check_config(first, other, student.config, other_student.config)
        other_start = other_student.state_dict()
        _check_names(first, other, pretrained, other_start)
        if any(not torch.equal(pretrained[name], tensor) for name, tensor in other_start.items()):
            raise UserError(
                f"{first.folder} and {other.folder} do not start from the same weights: "
                f"{_start(first)} and {_start(other)}"
            )
        end = ends[str(other.folder)] = other.stored_weights(weights)
        _check_names(first, other, ends[str(first.folder)], end)
    first_plan = plan(first.experiment)
    first.require(first_plan)  # else the weights would be chosen on other data than the run held out
    start = _with_head(first, first_plan, student, pretrained, ends)
    return RunGroup(tuple(runs), first_plan, student, start, ends, weights)


def same_held_out(runs: Sequence[Run]) -> bool:
    """Whether all runs held out the same data, so that none has trained on what another held out."""
    data = [run.description["data"] for run in runs]
    return all(each["held_out_fingerprint"] == data[0]["held_out_fingerprint"] for each in data)


def _with_head(
    run: Run, plan: Plan, student: Student, pretrained: Weights, ends: dict[str, Weights]
) -> Weights:
    """The pretrained weights; if the runs have a head, with the zero-shot classifier as their head."""
    end = next(iter(ends.values()))
    if "head.weight" not in end:
        return pretrained
    if "head.scale" not in end:
        raise UserError(
            f"the head of {run.folder} sees features at their own length, and the zero-shot classifier of "
            f"{run.experiment.model} does not: train with --unit to merge with it"
        )
    initial_heads = [stage.head for stage in plan.method.stages if isinstance(stage.head, ZeroShot)]
    zero_shot = initial_heads[0] if initial_heads else ZeroShot()
    world = World("cpu", "fp32")
    head: Head = zero_shot(student, plan.train, plan.templates, world, run.experiment.seed)
    return pretrained | {f"head.{name}": tensor for name, tensor in head.state_dict().items()}


def _check_classes(first: Run, other: Run) -> None:
    one, two = first.description["classes"], other.description["classes"]
    if one != two:
        unshared = next((name for name in [*one, *two] if (name in one) != (name in two)), None)
        reason = f"only one of them has {unshared!r}" if unshared is not None else "their order differs"
        raise UserError(
            f"{first.folder} ({len(one)} classes) and {other.folder} ({len(two)}) have different classes: {reason}"
        )


def _check_names(first: Run, other: Run, one: Weights, two: Weights) -> None:
    if unshared := sorted(one.keys() ^ two.keys()):
        without, with_it = (first, other) if unshared[0] in two else (other, first)
        raise UserError(
            f"{with_it.folder} has {unshared[0]} and {without.folder} has not: they cannot be merged"
        )


def _check_config(first: Run, other: Run, config: dict[str, Any], other_config: dict[str, Any]) -> None:
    one, two = dict(_flat(config)), dict(_flat(other_config))
    differing = [key for key in sorted({*one, *two}) if one.get(key) != two.get(key)]
    if not differing:
        return
    key = next((key for key in differing if key.rpartition(".")[2] in TOKENIZER), differing[0])
    kind = "tokenizers" if key.rpartition(".")[2] in TOKENIZER else "architectures"
    raise UserError(
        f"{first.folder} ({first.experiment.model}) and {other.folder} ({other.experiment.model}) have different "
        f"{kind}: {key} is {one.get(key)} and {two.get(key)}"
    )


def _flat(value: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield from _flat(inner, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", inner


def _start(run: Run) -> str:
    experiment = run.experiment
    seed = f" seed {experiment.seed}" if experiment.pretrained == "none" else ""
    return f"{experiment.model} {experiment.pretrained}{seed}"
