"""Each parser under test, with assertions on what it returns."""

from __future__ import annotations

import gzip
import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch

from studies.faults.workspace import STEPS
from tracer.core.regularizers import regularizer
from tracer.data.classes import classes
from tracer.data.formats.idx import FILES, arrays
from tracer.data.scan import validate
from tracer.data.sources import load
from tracer.merging.wise import alphas
from tracer.methods.base import method
from tracer.models.prompts import templates
from tracer.models.registry import locate
from tracer.report.run_data import read_run
from tracer.runs.experiment import Experiment
from tracer.runs.record import Recorder, read
from tracer.runs.run import Run
from tracer.storage.safetensors_io import read_weights
from tracer.sweep import Sweep
from tracer.sweep.supervisor import sweep_progress
from tracer.training.checkpoint import latest


def encoded(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def reads_table(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    examples = load(path)
    validate(examples)
    assert len(examples) > 0
    assert len(examples.fingerprint) == 16
    assert all(examples.captions) or not examples.captioned
    in_range = (examples.labels >= 0) & (examples.labels < len(examples.classes))
    assert not examples.labelled or in_range.all()


def reads_settings(value: Any) -> None:
    experiment = Experiment.from_json(value)
    again = experiment.to_json()
    assert {name: again[name] for name in value} == {
        **value,
        **({"retain": again["retain"]} if "retain" in value else {}),
    }
    assert Experiment.from_json(json.loads(json.dumps(again))).id == experiment.id
    assert math.isfinite(experiment.lr)


def reads_method(call: tuple[str, dict[str, Any]]) -> None:
    name, options = call
    method(name, **options)


def reads_run(run: Path, content: bytes) -> None:
    (run / "experiment.json").write_bytes(content)
    try:
        data = read_run(run)
        assert data.step >= 0
        assert isinstance(data.title, str)
    except ValueError:
        pass  # a folder that is no readable run
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
    (place,) = sweep.by_folder(folder)
    place.mkdir(parents=True, exist_ok=True)
    for name, content in zip(("experiment.json", "log.jsonl"), files, strict=True):
        (place / name).unlink(missing_ok=True)
        if content is not None:
            (place / name).write_bytes(content)
    assert 0 <= sweep_progress(sweep, folder).share <= 1


def reads_weights(path: Path, original: dict[str, torch.Tensor] | None, content: bytes) -> None:
    path.write_bytes(content)
    weights = read_weights(path)
    if original is not None:
        assert weights.keys() == original.keys()
        assert all(weights[name].equal(original[name]) for name in original), "silently wrong"


def reads_manifest(place: Path, content: bytes) -> None:
    whole = (place / "manifest.json").read_bytes()
    try:
        (place / "manifest.json").write_bytes(content)
        checkpoint = latest(place.parent)
        assert checkpoint is not None
        assert checkpoint[0] == STEPS - 2
        assert checkpoint[1].counters["stage_step"] == STEPS - 2
    finally:
        (place / "manifest.json").write_bytes(whole)


def reads_idx(folder: Path, file: tuple[bool, bytes]) -> None:
    packed, content = file
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, _ in FILES["test"]:
        (folder / f"{name}.gz").write_bytes(gzip.compress(content) if packed else content)
    arrays(folder, "test")
    raise AssertionError("accepted files that are not MNIST")


def reads_npz(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    examples = load(path)
    assert len(examples) == 2
    assert np.asarray(examples.images[0]).shape == (4, 4, 3)


def reads_config(folder: Path, content: bytes) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "open_clip_config.json").write_bytes(content)
    assert isinstance(locate(str(folder)).config, dict)


def reads_classes(folder: Path, text: str) -> None:
    for name in ("names.json", "names.txt"):
        (folder / name).write_bytes(encoded(text))
        read = classes(["0", "1"], folder / name)
        assert all(isinstance(each, str) and each.strip() for each in read.names)


def reads_templates(path: Path, text: str) -> None:
    path.write_text(text)
    assert all(each.count("{}") == 1 for each in templates(path))


def reads_alphas(text: str) -> None:
    values = alphas(text)
    assert values
    assert all(0 <= alpha <= 1 for alpha in values)


def reads_regularizer(text: str) -> None:
    assert regularizer(text) is not None
