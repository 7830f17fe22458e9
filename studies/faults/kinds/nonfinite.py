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

import tracer.training.loop
from studies.faults.life import live
from studies.faults.site import STEPS, Site, difference
from studies.faults.verdict import Verdict, lost, refused, survived
from tracer.core.objective import Loss
from tracer.storage.safetensors_io import write_weights
from tracer.training.step import State

VALUES = (math.nan, math.inf, -math.inf)


def trials(site: Site) -> Iterator[Verdict]:
    """Refused before any work where it can be known, else at the next save; what was saved is finite."""
    for value in site.few(1, VALUES):
        for _ in range(site.some(1, 3)):
            yield _pretrained(site, value)
        yield from _finished(site, value)
    for flag in ("lr", "decay", "clip", "warmup", "epochs"):
        for value in site.few(1, ("nan", "inf", "-inf", "-1")):
            out = site.fresh("never")
            steps = None if flag == "epochs" else STEPS
            end, what = live(site.training(out, **{"steps": steps, flag: value})), f"--{flag} {value}"
            yield refused(what) if end.clear and not out.exists() else lost(what, end.last_words)
    for value in site.few(1, (*VALUES, -0.5, 1.5)):
        yield _data(site, value)
    for _ in range(site.some(1, 12)):
        step, value = site.rng.randint(1, STEPS), site.rng.choice(VALUES)
        yield _during(site, f"a loss of {value} at step {step}", lambda s=step, v=value: _spoil_loss(s, v))
        yield _during(
            site,
            f"a gradient that makes a weight {value} at step {step}",
            lambda s=step, v=value: _spoil(s, v),
        )
    yield _rate(site)


def _pretrained(site: Site, value: float) -> Verdict:
    folder = site.fresh("poisoned")
    assert live(["export", str(site.run), "--out", str(folder)]).code == 0
    file, config = folder / "open_clip_model.safetensors", folder / "open_clip_config.json"
    weights = load_file(file)
    name = site.rng.choice(sorted(name for name, tensor in weights.items() if tensor.is_floating_point()))
    weights[name].view(-1)[site.rng.randrange(weights[name].numel())] = value
    save_file(weights, file)
    told = json.loads(config.read_text())
    del told["weights_digest"]  # written by somebody else
    config.write_text(json.dumps(told))
    out, what = site.fresh("never"), f"pretrained weights: {value} in {name}"
    asked = site.training(out)
    asked[asked.index("--model") + 1] = str(folder)
    asked[asked.index("--pretrained") + 1] = "auto"
    end = live(asked)
    clear = end.clear and "not finite" in end.said and not (out / "result.json").exists()
    return refused(what) if clear else lost(what, end.last_words)


def _finished(site: Site, value: float) -> Iterator[Verdict]:
    run = site.copy(site.run, "poisoned")
    file = run / "weights" / "result.safetensors"
    weights = load_file(file)
    next(iter(weights.values())).view(-1)[0] = value
    write_weights(file, weights)
    for arguments in (
        ["export", str(run), "--out", str(site.fresh("never"))],
        ["merge", str(run), "--wise", "0.5", "--device", "cpu"],
        ["eval", str(run), "--data", str(site.photos), "--device", "cpu"],
    ):
        end, what = live(arguments), f"{arguments[0]}: {value} in a run's weights"
        yield refused(what) if end.clear else lost(what, end.last_words)


def _data(site: Site, value: float) -> Verdict:
    file, what = site.fresh("data.npz"), f"pixels of {value}"
    images = np.full((16, 8, 8, 3), 0.5, np.float32)
    images[3, 2, 1, 0] = value
    np.savez(file, images=images, labels=np.arange(16) % 2)
    out = site.fresh("never")
    end = live(site.training(out, data=file))
    return refused(what) if end.clear and not out.exists() else lost(what, end.last_words)


def _during(site: Site, what: str, wound: Any) -> Verdict:
    """The run stops, nothing broken was kept, and it goes on from before."""
    run = site.fresh("poisoned")
    end = site.trained(run, wound=wound)
    if not (end.clear and "not finite" in end.said) or (run / "result.json").exists():
        return lost(what, end.last_words)
    if broken := _broken(run / "resume"):
        return lost(what, f"{broken} was kept")
    end = site.trained(run)
    wrong = end.last_words if end.code else difference(run, site.run)
    return lost(what, wrong) if wrong else survived(what)


def _broken(resume: Path) -> str:
    files = resume.glob("step-*/*.safetensors")
    return ", ".join(str(f) for f in files if not all(torch.isfinite(t).all() for t in load_file(f).values()))


def _spoil_loss(number: int, value: float) -> None:
    real = tracer.training.loop.step

    def step(state: State, batch: Any) -> Loss:
        loss = real(state, batch)
        return loss._replace(total=loss.total + value) if state.step == number else loss

    tracer.training.loop.step = step


def _spoil(number: int, value: float) -> None:
    real = tracer.training.loop.step

    def step(state: State, batch: Any) -> Loss:
        loss = real(state, batch)
        if state.step == number:
            with torch.no_grad():
                state.student.clip.visual.proj.view(-1)[0] = value
        return loss

    tracer.training.loop.step = step


def _rate(site: Site) -> Verdict:
    run, what = site.fresh("fast"), "a learning rate of 1e30"
    end = live(site.training(run, lr="1e30"))
    clear = end.clear and "not finite" in end.said and not (run / "result.json").exists()
    return refused(what) if clear and not _broken(run / "resume") else lost(what, end.last_words)
