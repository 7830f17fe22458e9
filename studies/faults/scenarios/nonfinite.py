"""NaN and infinity in weights, data, settings, loss and gradients."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

import tracer.training.learner
from studies.faults.process import run_command
from studies.faults.verdict import Verdict, lost, refused, survived
from studies.faults.workspace import STEPS, Workspace, difference
from tracer.core.objective import Loss
from tracer.storage.safetensors_io import write_weights
from tracer.training.step import State

VALUES = (math.nan, math.inf, -math.inf)


def trials(workspace: Workspace) -> Iterator[Verdict]:
    """Refused before any work where possible, else at the next save; all saved weights are finite."""
    for value in workspace.sample(1, VALUES):
        for _ in range(workspace.count(1, 3)):
            yield _pretrained(workspace, value)
        yield from _finished(workspace, value)
    for flag in ("lr", "decay", "clip", "warmup", "epochs"):
        for value in workspace.sample(1, ("nan", "inf", "-inf", "-1")):
            out = workspace.new_path("never")
            flags: dict[str, Any] = {"steps": None if flag == "epochs" else STEPS, flag: value}
            result, what = run_command(workspace.train_arguments(out, **flags)), f"--{flag} {value}"
            yield refused(what) if result.clear_error and not out.exists() else lost(what, result.tail)
    for value in workspace.sample(1, (*VALUES, -0.5, 1.5)):
        yield _data(workspace, value)
    for _ in range(workspace.count(1, 12)):
        step, value = workspace.rng.randint(1, STEPS), workspace.rng.choice(VALUES)
        yield _during(
            workspace, f"a loss of {value} at step {step}", lambda s=step, v=value: _change_loss(s, v)
        )
        yield _during(
            workspace,
            f"a gradient that makes a weight {value} at step {step}",
            lambda s=step, v=value: _change_weight(s, v),
        )
    yield _rate(workspace)


def _pretrained(workspace: Workspace, value: float) -> Verdict:
    folder = workspace.new_path("nonfinite")
    assert run_command(["export", str(workspace.finished_run), "--out", str(folder)]).code == 0
    file, config = folder / "open_clip_model.safetensors", folder / "open_clip_config.json"
    weights = load_file(file)
    name = workspace.rng.choice(
        sorted(name for name, tensor in weights.items() if tensor.is_floating_point())
    )
    weights[name].view(-1)[workspace.rng.randrange(weights[name].numel())] = value
    save_file(weights, file)
    description = json.loads(config.read_text())
    del description["weights_digest"]  # exports of other programs have none
    config.write_text(json.dumps(description))
    out, what = workspace.new_path("never"), f"pretrained weights: {value} in {name}"
    arguments = workspace.train_arguments(out)
    arguments[arguments.index("--model") + 1] = str(folder)
    arguments[arguments.index("--pretrained") + 1] = "auto"
    result = run_command(arguments)
    clear = result.clear_error and "not finite" in result.output and not (out / "result.json").exists()
    return refused(what) if clear else lost(what, result.tail)


def _finished(workspace: Workspace, value: float) -> Iterator[Verdict]:
    run = workspace.copy(workspace.finished_run, "nonfinite")
    file = run / "weights" / "result.safetensors"
    weights = load_file(file)
    next(iter(weights.values())).view(-1)[0] = value
    write_weights(file, weights)
    for arguments in (
        ["export", str(run), "--out", str(workspace.new_path("never"))],
        ["merge", str(run), "--wise", "0.5", "--device", "cpu"],
        ["eval", str(run), "--data", str(workspace.photos), "--device", "cpu"],
    ):
        result, what = run_command(arguments), f"{arguments[0]}: {value} in a run's weights"
        yield refused(what) if result.clear_error else lost(what, result.tail)


def _data(workspace: Workspace, value: float) -> Verdict:
    file, what = workspace.new_path("data.npz"), f"pixels of {value}"
    images = np.full((16, 8, 8, 3), 0.5, np.float32)
    images[3, 2, 1, 0] = value
    np.savez(file, images=images, labels=np.arange(16) % 2)
    out = workspace.new_path("never")
    result = run_command(workspace.train_arguments(out, data=file))
    return refused(what) if result.clear_error and not out.exists() else lost(what, result.tail)


def _during(workspace: Workspace, what: str, inject: Any) -> Verdict:
    """The run stops, every saved checkpoint is finite, and the run can be resumed."""
    run = workspace.new_path("nonfinite")
    result = workspace.train_or_resume(run, inject=inject)
    if not (result.clear_error and "not finite" in result.output) or (run / "result.json").exists():
        return lost(what, result.tail)
    if broken := _broken(run / "resume"):
        return lost(what, f"{broken} was saved")
    result = workspace.train_or_resume(run)
    wrong = result.tail if result.code else difference(run, workspace.finished_run)
    return lost(what, wrong) if wrong else survived(what)


def _broken(resume: Path) -> str:
    files = resume.glob("step-*/*.safetensors")
    return ", ".join(str(f) for f in files if not all(torch.isfinite(t).all() for t in load_file(f).values()))


def _change_loss(number: int, value: float) -> None:
    original = tracer.training.learner.step

    def step(state: State, batch: Any) -> Loss:
        loss = original(state, batch)
        return loss._replace(total=loss.total + value) if state.step == number else loss

    tracer.training.learner.step = step


def _change_weight(number: int, value: float) -> None:
    original = tracer.training.learner.step

    def step(state: State, batch: Any) -> Loss:
        loss = original(state, batch)
        if state.step == number:
            with torch.no_grad():
                state.student.clip.visual.proj.view(-1)[0] = value
        return loss

    tracer.training.learner.step = step


def _rate(workspace: Workspace) -> Verdict:
    run, what = workspace.new_path("fast"), "a learning rate of 1e30"
    result = run_command(workspace.train_arguments(run, lr="1e30"))
    clear = result.clear_error and "not finite" in result.output and not (run / "result.json").exists()
    return refused(what) if clear and not _broken(run / "resume") else lost(what, result.tail)
