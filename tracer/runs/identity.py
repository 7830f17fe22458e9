"""What describes a run, and what makes two the same: hashes of settings, data, prompts and model make its id."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from tracer.models.download import TOKENIZER_SUFFIXES
from tracer.models.source import CONFIG_FILE, SCHEMAS
from tracer.models.task import TASK_FILE
from tracer.runs.experiment import Experiment
from tracer.runs.files import CLASS_NAMES, CONTENT, FETCHED, TEMPLATES
from tracer.runs.plan import Plan
from tracer.storage.checksum import short_hash
from tracer.storage.provenance import commit, versions
from tracer.storage.safetensors_io import file_blake2b

MODEL_CONFIG = "model config"  # a key of `content`


def identity(plan: Plan) -> str:
    """The id of a run: a short hash of its `content`."""
    return short_hash(content(plan), size=5)


def content(plan: Plan) -> dict[str, str | None]:
    """Hashes of all that determines a run, by name: settings, data, prompts and the model, not their places on disk."""
    sets = {"training": plan.train, "held-out": plan.held_out, "anchor": plan.anchors}
    sets |= {f"retained set {number}": each for number, each in enumerate(plan.retain, 1)}
    return {
        "settings": replace(plan.experiment, templates=None).id,
        **{
            f"{name} {part}": digest
            for name, examples in sets.items()
            if examples is not None
            for part, digest in examples.digests.items()
        },
        "templates": short_hash(plan.templates),
        MODEL_CONFIG: model_config(plan.experiment),
        "weights": start(plan.experiment),
    }


def model_config(experiment: Experiment) -> str | None:
    """A hash of the config and the tokenizer files of a model that is a file, a folder or on the hub, else None.

    They can be changed under their name; the config of a model that open_clip knows by name is fixed.
    """
    path = Path(experiment.model.removeprefix("local-dir:"))
    if not path.exists() and not experiment.model.startswith(SCHEMAS):
        return None
    texts = [file for file in sorted(path.glob("*")) if file.suffix in TOKENIZER_SUFFIXES and file.is_file()]
    files = {file.name: _text(file) for file in texts}
    files.pop(TASK_FILE, None)  # what an export was finetuned for, which is not used
    try:
        whole = json.loads(files.pop(CONFIG_FILE, "{}"))
    except (ValueError, RecursionError):
        whole = {}
    return short_hash([experiment.locate().config, whole.get("preprocess_cfg"), files])


def _text(file: Path) -> str:
    """The text of a file, or a checksum if it is none, as in models of sentencepiece."""
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return _checksum(file)


def fetched(experiment: Experiment) -> dict[str, str]:
    """Checksums of the files that the model's name stands for, where they came from the network."""
    return {name: _checksum(file) for name, file in experiment.locate().fetched.items()}


def start(experiment: Experiment) -> str | None:
    """A checksum of the pretrained weights if they are files, because a file can be replaced under its name."""
    checksums = [_checksum(file) for file in experiment.locate().files]
    return short_hash(checksums) if len(checksums) > 1 else next(iter(checksums), None)


def _checksum(file: Path) -> str:
    status = file.stat()
    return _file_checksum(file, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


@cache
def _file_checksum(file: Path, *_state: int) -> str:
    """The checksum of a file in this state, computed once: weights are large."""
    return file_blake2b(file)


def describe(plan: Plan) -> dict[str, Any]:
    """The contents of `experiment.json`: settings, data, classes, versions of the software."""
    data = {"name": plan.train.name, "train": len(plan.train), "held_out": len(plan.held_out)}
    return {
        "id": identity(plan),
        CONTENT: content(plan),
        "experiment": plan.experiment.to_json(),
        "start": start(plan.experiment),
        FETCHED: fetched(plan.experiment),
        "steps": plan.steps,
        "data": {
            **data,
            "division": plan.division,
            "fingerprint": plan.train.content_fingerprint,
            "held_out_fingerprint": plan.held_out.content_fingerprint,
        },
        "classes": list(plan.train.classes),
        CLASS_NAMES: plan.names,
        TEMPLATES: list(plan.templates),
        "versions": versions(),
        "git": commit(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
