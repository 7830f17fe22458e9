"""The parsers of foreign input by subject, each with the inputs that hypothesis tries on it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import torch
from hypothesis import strategies as st
from PIL import Image

from studies.faults.fuzz import Parser, fuzzed
from studies.faults.readers import (
    encoded,
    reads_alphas,
    reads_classes,
    reads_config,
    reads_idx,
    reads_log,
    reads_manifest,
    reads_method,
    reads_npz,
    reads_regularizer,
    reads_run,
    reads_settings,
    reads_sweep,
    reads_table,
    reads_templates,
    reads_weights,
)
from studies.faults.values import (
    damaged,
    export_config,
    headers,
    json_values,
    log_lines,
    method_options,
    mutated,
    npz_archive,
    state_files,
    texts_like,
)
from studies.faults.verdict import Verdict
from studies.faults.workspace import STEPS, Workspace
from tracer.methods.base import methods
from tracer.storage.safetensors_io import write_weights

Parsers = Callable[[Workspace, Path], Iterator[Parser]]


def parser_trials(workspace: Workspace, parsers: Parsers) -> Iterator[Verdict]:
    """Every parser returns a correct result or raises UserError."""
    folder = workspace.new_path("parsers")
    folder.mkdir()
    for parser in parsers(workspace, folder):
        yield from fuzzed(parser, workspace.count(*parser.tries), workspace.rng.randrange(1 << 30))


def setting_parsers(workspace: Workspace, folder: Path) -> Iterator[Parser]:
    """Settings, the options of methods, and flags."""
    del folder
    described = json.loads((workspace.finished_run / "experiment.json").read_text())
    yield Parser("settings", mutated(described["experiment"]), reads_settings)
    yield Parser(
        "options of a method", st.tuples(st.sampled_from(sorted(methods())), method_options()), reads_method
    )
    marks = st.text(alphabet="0123456789.:-+einfa ", max_size=12)
    yield Parser("--wise", marks, reads_alphas)
    yield Parser(
        "--regularizer",
        marks | marks.map(lambda text: f"l2sp:{text}") | st.text(max_size=8),
        reads_regularizer,
    )


def run_parsers(workspace: Workspace, folder: Path) -> Iterator[Parser]:
    """Descriptions, logs and manifests of runs, and states of sweeps."""
    run = workspace.copy(workspace.finished_run, "fuzzed")
    described = json.loads((run / "experiment.json").read_text())
    yield Parser("a run's description", texts_like(described), partial(reads_run, run), (30, 600))
    yield Parser("log.jsonl", log_lines(run / "log.jsonl"), partial(reads_log, folder / "log.jsonl"))
    yield Parser(
        "a sweep's state", st.tuples(state_files(), state_files()), partial(reads_sweep, folder / "sweep")
    )
    manifest = next((workspace.stopped_run / "resume").glob(f"step-{STEPS - 2:09d}/manifest.json"))
    resume = folder / "resume" / manifest.parent.name
    shutil.copytree(manifest.parent, resume)
    yield Parser(
        "a checkpoint's manifest",
        texts_like(json.loads(manifest.read_text())),
        partial(reads_manifest, resume),
        (20, 300),
    )


def weight_parsers(workspace: Workspace, folder: Path) -> Iterator[Parser]:
    """Safetensors files and configs of models."""
    weights = {"a": torch.arange(12.0).view(3, 4), "b": torch.zeros(0, 2), "c": torch.tensor(3)}
    write_weights(folder / "w.safetensors", weights)
    whole = (folder / "w.safetensors").read_bytes()
    yield Parser("a safetensors header", headers(), partial(reads_weights, folder / "w.safetensors", None))
    yield Parser(
        "weights with a checksum", damaged(whole), partial(reads_weights, folder / "w.safetensors", weights)
    )
    yield Parser(
        "a model's config", texts_like(export_config(workspace)), partial(reads_config, folder / "model")
    )


def name_parsers(workspace: Workspace, folder: Path) -> Iterator[Parser]:
    """Class names, templates, idx files and NumPy archives."""
    del workspace
    yield Parser(
        "class names", json_values.map(json.dumps) | st.text(max_size=30), partial(reads_classes, folder)
    )
    yield Parser(
        "templates", st.text(alphabet="a {}\n", max_size=20), partial(reads_templates, folder / "t.txt")
    )
    yield Parser(
        "idx files", st.tuples(st.booleans(), st.binary(max_size=60)), partial(reads_idx, folder / "idx")
    )
    yield Parser(
        "a NumPy archive",
        damaged(npz_archive()) | st.binary(max_size=80),
        partial(reads_npz, folder / "t.npz"),
    )


def table_parsers(workspace: Workspace, folder: Path) -> Iterator[Parser]:
    """CSV, JSON lines and JSON."""
    del workspace
    names = ("a.png", "b.png", "c.png")
    for number, name in enumerate(names):
        Image.new("RGB", (4, 4), (number, 0, 0)).save(folder / name)
    pictures, labels = st.sampled_from(names), st.sampled_from(["x", "y", "X", "1"])
    cells = st.sampled_from(["a.png", "image", "caption", "label", "x", "", '"', "split", "train"]) | st.text(
        max_size=4
    )
    rows = st.lists(st.lists(cells, min_size=1, max_size=4), max_size=4)
    separated = st.builds(
        lambda mark, r: "\n".join(mark.join(each) for each in r), st.sampled_from(",;\t|"), rows
    )
    lines = st.lists(st.tuples(pictures, labels | cells).map(",".join), min_size=1, max_size=5)
    right = lines.map(lambda each: "\n".join(["image,label", *each]))
    yield Parser(
        "CSV",
        (separated | right).map(encoded) | st.binary(max_size=40),
        partial(reads_table, folder / "t.csv"),
    )
    right_record = st.fixed_dictionaries({"image": pictures, "label": labels | json_values})
    likely = st.fixed_dictionaries({"image": pictures | json_values, "label": json_values})
    records = st.lists(right_record, min_size=2, max_size=4) | st.lists(likely | json_values, max_size=3)
    lines = records.map(lambda each: "\n".join(map(json.dumps, each)).encode())
    yield Parser("JSON lines", lines | st.binary(max_size=40), partial(reads_table, folder / "t.jsonl"))
    yield Parser(
        "JSON", records.map(lambda each: json.dumps(each).encode()), partial(reads_table, folder / "t.json")
    )
