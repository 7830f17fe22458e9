"""Each parser under test, and what must hold of an answer that it gives."""

from __future__ import annotations

import gzip
import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch

from studies.faults.site import STEPS
from tracer.core.regularizers import regularizer
from tracer.data.check import validate
from tracer.data.classes import classes
from tracer.data.idx import FILES, arrays
from tracer.data.sources import load
from tracer.merging.wise import alphas
from tracer.methods.base import method
from tracer.models.prompts import templates
from tracer.models.registry import locate
from tracer.report.account import read_account
from tracer.runs.experiment import Experiment
from tracer.runs.record import Recorder, read
from tracer.runs.run import Run
from tracer.storage.safetensors_io import read_weights
from tracer.sweep import Sweep
from tracer.sweep.crew import standing
from tracer.training.checkpoint import latest


def encoded(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def reads_table(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    found = load(path)
    validate(found)
    assert len(found) > 0
    assert len(found.fingerprint) == 16
    assert all(found.captions) or not found.captioned
    assert not found.labelled or ((found.labels >= 0) & (found.labels < len(found.classes))).all()


def reads_settings(value: Any) -> None:
    made = Experiment.from_json(value)
    again = made.to_json()
    assert {name: again[name] for name in value} == {
        **value,
        **({"retain": again["retain"]} if "retain" in value else {}),
    }
    assert Experiment.from_json(json.loads(json.dumps(again))).id == made.id
    assert math.isfinite(made.lr)


def reads_method(asked: tuple[str, dict[str, Any]]) -> None:
    name, options = asked
    method(name, **options)


def reads_run(run: Path, content: bytes) -> None:
    (run / "experiment.json").write_bytes(content)
    try:
        account = read_account(run)
        assert account.step >= 0
        assert isinstance(account.title, str)
    except ValueError:
        pass  # its way to say that there is nothing to tell
    opened = Run.open(run)
    assert isinstance(opened.experiment, Experiment)


def reads_log(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    before = [entry for entry in read(path) if entry["step"] <= 4]
    Recorder(path).rewind(4)
    assert json.dumps(list(read(path))) == json.dumps(before)
    Recorder(path).log(5, "train", loss=1.0)
    assert list(read(path))[-1] == {"step": 5, "kind": "train", "loss": 1.0}


def reads_sweep(folder: Path, files: tuple[bytes | None, bytes | None]) -> None:
    sweep = Sweep((Experiment(data="digits"),))
    (place,) = sweep.placed(folder)
    place.mkdir(parents=True, exist_ok=True)
    for name, content in zip(("experiment.json", "log.jsonl"), files, strict=True):
        (place / name).unlink(missing_ok=True)
        if content is not None:
            (place / name).write_bytes(content)
    assert 0 <= standing(sweep, folder).share <= 1


def reads_weights(path: Path, original: dict[str, torch.Tensor] | None, content: bytes) -> None:
    path.write_bytes(content)
    found = read_weights(path)
    if original is not None:
        assert found.keys() == original.keys()
        assert all(found[name].equal(original[name]) for name in original), "silently wrong"


def reads_manifest(place: Path, content: bytes) -> None:
    whole = (place / "manifest.json").read_bytes()
    try:
        (place / "manifest.json").write_bytes(content)
        found = latest(place.parent)
        assert found is not None
        assert found[0] == STEPS - 2
        assert found[1].counters["stage_step"] == STEPS - 2
    finally:
        (place / "manifest.json").write_bytes(whole)


def reads_idx(folder: Path, given_: tuple[bool, bytes]) -> None:
    packed, content = given_
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, _ in FILES["test"]:
        (folder / f"{name}.gz").write_bytes(gzip.compress(content) if packed else content)
    arrays(folder, "test")
    raise AssertionError("only MNIST is MNIST")


def reads_npz(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    found = load(path)
    assert len(found) == 2
    assert np.asarray(found.images[0]).shape == (4, 4, 3)


def reads_config(folder: Path, content: bytes) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "open_clip_config.json").write_bytes(content)
    assert isinstance(locate(str(folder)).config, dict)


def reads_classes(folder: Path, text: str) -> None:
    for name in ("names.json", "names.txt"):
        (folder / name).write_bytes(encoded(text))
        found = classes(["0", "1"], folder / name)
        assert all(isinstance(each, str) and each.strip() for each in found.names)


def reads_templates(path: Path, text: str) -> None:
    path.write_text(text)
    assert all(each.count("{}") == 1 for each in templates(path))


def reads_alphas(text: str) -> None:
    found = alphas(text)
    assert found
    assert all(0 <= alpha <= 1 for alpha in found)


def reads_tether(text: str) -> None:
    assert regularizer(text) is not None
