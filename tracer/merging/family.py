"""Runs that may be merged: one architecture, one tokenizer, one class list, one start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch

from tracer.core.errors import UserError
from tracer.core.weights import Weights
from tracer.methods.heads import ZeroShot
from tracer.models.student import Head, Student, read_weights
from tracer.parallel import World
from tracer.runs.plan import Plan, plan
from tracer.runs.run import Run

TOKENIZER = ("vocab_size", "context_length", "hf_tokenizer_name", "tokenizer_kwargs", "tokenizer_mode")


class Family(NamedTuple):
    """What the runs have in common, and the weights of each."""

    runs: tuple[Run, ...]
    plan: Plan  # of the first
    student: Student
    start: Weights  # pretrained, with the zero-shot head where the runs have a head
    ends: dict[str, Weights]


def family(runs: Sequence[Run], weights: str = "result") -> Family:
    """Open the runs, and refuse those that cannot be merged, naming both sides."""
    first, *others = runs
    student = first.student("pretrained")
    pretrained = {name: tensor.clone() for name, tensor in student.state_dict().items()}
    ends = {str(first.folder): _weights(first, weights)}
    for other in others:
        if str(other.folder) in ends:
            raise UserError(f"{other.folder} is given twice")
        _check_classes(first, other)
        theirs = other.student("pretrained")
        _check_config(first, other, student.config, theirs.config)
        if any(not torch.equal(pretrained[name], tensor) for name, tensor in theirs.state_dict().items()):
            raise UserError(
                f"{first.folder} and {other.folder} do not start from the same weights: "
                f"{_origin(first)} and {_origin(other)}"
            )
        ends[str(other.folder)] = _weights(other, weights)
        _check_head(first, other, ends)
    made = plan(first.experiment)
    return Family(tuple(runs), made, student, _with_head(first, made, student, pretrained, ends), ends)


def same_held_out(runs: Sequence[Run]) -> bool:
    """Whether no run has trained on what another one held out, as far as their descriptions tell."""
    data = [run.description["data"] for run in runs]
    return all(each["held_out_fingerprint"] == data[0]["held_out_fingerprint"] for each in data)


def _weights(run: Run, name: str) -> Weights:
    if not run.weights_file(name).exists():
        there = sorted(file.stem for file in (run.folder / "weights").glob("*.safetensors"))
        raise UserError(f"{run.folder} has no {name} weights; it has: {', '.join(there) or 'none yet'}")
    return read_weights(run.weights_file(name))


def _with_head(
    run: Run, made: Plan, student: Student, pretrained: Weights, ends: dict[str, Weights]
) -> Weights:
    """The pretrained weights, and where the runs have a head the zero-shot classifier in the same form."""
    end = next(iter(ends.values()))
    if "head.weight" not in end:
        return pretrained
    if "head.scale" not in end:
        raise UserError(
            f"the head of {run.folder} sees features at their own length, and the zero-shot classifier of "
            f"{run.experiment.model} does not: train with --unit to merge with it"
        )
    starts = [stage.head for stage in made.method.stages if isinstance(stage.head, ZeroShot)]
    begin = starts[0] if starts else ZeroShot()
    world = World("cpu", "fp32")
    head: Head = begin(student, made.train, made.templates, world, run.experiment.seed)
    return pretrained | {f"head.{name}": tensor for name, tensor in head.state_dict().items()}


def _check_classes(first: Run, other: Run) -> None:
    mine, theirs = first.description["classes"], other.description["classes"]
    if mine != theirs:
        odd = next((name for name in [*mine, *theirs] if (name in mine) != (name in theirs)), None)
        told = f"only one of them has {odd!r}" if odd is not None else "the order differs"
        raise UserError(
            f"{first.folder} knows {len(mine)} classes and {other.folder} {len(theirs)} others: {told}"
        )


def _check_config(first: Run, other: Run, mine: dict[str, Any], theirs: dict[str, Any]) -> None:
    one, two = dict(_flat(mine)), dict(_flat(theirs))
    differing = [key for key in sorted({*one, *two}) if one.get(key) != two.get(key)]
    if not differing:
        return
    key = next((key for key in differing if key.rpartition(".")[2] in TOKENIZER), differing[0])
    what = "tokenizers" if key.rpartition(".")[2] in TOKENIZER else "architectures"
    raise UserError(
        f"{first.folder} ({first.experiment.model}) and {other.folder} ({other.experiment.model}) have different "
        f"{what}: {key} is {one.get(key)} and {two.get(key)}"
    )


def _check_head(first: Run, other: Run, ends: dict[str, Weights]) -> None:
    mine, theirs = ends[str(first.folder)], ends[str(other.folder)]
    if odd := sorted(mine.keys() ^ theirs.keys()):
        has, lacks = (first, other) if odd[0] in mine else (other, first)
        raise UserError(f"{has.folder} has {odd[0]} and {lacks.folder} has not: they do not merge")


def _flat(value: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield from _flat(inner, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", inner


def _origin(run: Run) -> str:
    experiment = run.experiment
    seed = f" seed {experiment.seed}" if experiment.pretrained == "none" else ""
    return f"{experiment.model} {experiment.pretrained}{seed}"
