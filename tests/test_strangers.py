"""A stranger's folder asks no other machine for anything and opens nothing elsewhere, whatever command reads it."""

from __future__ import annotations

import ast
import json
import os
import shutil
import socket
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import numpy as np
import pytest
from kept import answers

import tracer
from tracer.cli import commands
from tracer.cli.app import main
from tracer.core.errors import UserError
from tracer.data.place import leaves_machine, remember_named, require_named
from tracer.measure.answers import Store
from tracer.models.registry import locate
from tracer.runs.files import DESCRIPTION
from tracer.storage.checksum import add_checksum

ADDRESS = "127.0.0.1:9"  # nobody answers there
SPECS = (
    f"http://{ADDRESS}/x.tar",
    f"http://{ADDRESS}/x.tar?a=b",
    f"id=http://{ADDRESS}/x.tar?a=b=c",
    f"HTTP://{ADDRESS}/x.tar",
    f"  http://{ADDRESS}/x.tar",
    f"http%3A%2F%2F{ADDRESS}/x.tar",
    f"http%253A//{ADDRESS}/x.tar",
    f"http{{:,}}//{ADDRESS}/x.tar",
    f"{{http,https}}://{ADDRESS}/x.tar",
    f"simplecache::http://{ADDRESS}/x.tar",
    "zip::x.tar",
    "s3://bucket/x.tar",
    "ftp://host/x.tar",
    "file://host/x.tar",
    "//host/share/x.tar",
    "\\\\host\\share\\x.tar",
    "hf:stranger/beacon",
    "HF:stranger/beacon",
    " hf:stranger/beacon",
    "role=hf:stranger/beacon",
    "hf:stranger/beacon:configuration",
    "github:owner/name",
    "memory://x.tar",
)
HERE = (
    "photos",
    "id=photos",
    "a=b/c.csv",
    "./hf",
    "x-{000..011}.tar",
    "digits",
    "digits:coloured",
    "embedded:digits",
    "emoji:names:strong",
    "memory:0123",
    "C:\\photos",
    "a photo: of a cat.csv",
    "100%.csv",
)


@pytest.mark.parametrize("spec", SPECS)
def test_an_address_is_one_however_it_is_spelt(spec: str) -> None:
    assert leaves_machine(spec)


@pytest.mark.parametrize("spec", HERE)
def test_a_place_on_this_machine_is_none(spec: str) -> None:
    assert not leaves_machine(spec)


def test_a_folder_of_the_hub_s_format_is_local_only_as_a_saved_data_set(tmp_path: Path) -> None:
    """The hub's client follows the addresses that the README of any other folder names."""
    assert leaves_machine(f"hf:{tmp_path}")
    (tmp_path / "state.json").touch()
    assert not leaves_machine(f"hf:{tmp_path}")


def test_an_address_that_the_user_has_named_is_followed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRACER_CACHE", str(tmp_path))
    spec = "s3://own/x.tar"
    with pytest.raises(UserError, match=r"tracer check s3://own/x\.tar"):
        require_named((spec,), "runs/a")
    remember_named((spec,))
    require_named((spec,), "runs/a")
    with pytest.raises(UserError, match=r"runs/a names s3://own/y\.tar"):
        require_named((spec, "s3://own/y.tar"), "runs/a")


class Reached(BaseException):
    """A request, or a file that is not one's business."""


_watched: list[tuple[Path, ...]] = []  # the folders that may be opened, while somebody watches
_breaches: list[str] = []


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watched:
        return
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        _breaches.append(f"{event} {arguments[1:] if event == 'socket.connect' else arguments[:2]}")
        raise Reached(_breaches[-1])
    if event == "open" and isinstance(arguments[0], str | bytes):
        path = Path(os.path.realpath(os.fsdecode(arguments[0])))
        if not any(path.is_relative_to(folder) for folder in _watched[-1]):
            _breaches.append(f"open {path}")


@contextmanager
def watched(*folders: Path) -> Iterator[None]:
    """No request is made inside, and nothing is opened but what is named, the package, Python, and the cache."""
    own = (
        Path(tracer.__file__).parent,
        Path(sys.prefix),
        Path(sys.base_prefix),
        Path(os.environ["TRACER_CACHE"]),
    )
    system = (Path("/proc"), Path("/sys"), Path("/dev"), Path("/etc"), Path(sysconfig.get_path("stdlib")))
    libraries = {Path(place) for place in sys.path if place}
    temporary = Path(tempfile.gettempdir()) / "tracer-none"
    allowed = (*folders, *own, *system, *libraries, temporary)
    _breaches.clear()
    _watched.append(tuple(Path(os.path.realpath(each)) for each in allowed))
    try:
        yield
    finally:
        _watched.pop()
    assert _breaches == []


@pytest.fixture(scope="module", autouse=True)
def audit() -> None:
    sys.addaudithook(_audit)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory, minute_model: Path) -> dict[str, Path]:
    """A finished run, its export, and images of the user."""
    folder = tmp_path_factory.mktemp("strangers")
    rng = np.random.default_rng(0)
    for name in ("run", "own"):
        images = rng.integers(256, size=(60, 28, 28, 3), dtype=np.uint8)
        np.savez(
            folder / f"{name}.npz", images=images, labels=np.array(["cat", "dog", "owl"])[np.arange(60) % 3]
        )
    run = tracer.finetune(
        str(folder / "run.npz"),
        method="flyp",
        model=str(minute_model),
        pretrained="none",
        steps=2,
        batch=8,
        device="cpu",
        workers=0,
        held_out_share=0.4,
        out=folder / "run",
        callback=id,
    )
    tracer.evaluate(run, data=str(folder / "own.npz"), device="cpu")
    tracer.export(run, folder / "export")
    return {
        "folder": folder,
        "run": folder / "run",
        "data": folder / "own.npz",
        "export": folder / "export",
        "model": minute_model,
    }


def stranger(places: dict[str, Path], folder: Path, spec: str, finished: bool = True) -> Path:
    """A copy of the run, in which everything that names data names this address."""
    shutil.copytree(places["run"], folder)
    description = json.loads((folder / DESCRIPTION).read_text())
    experiment = description["experiment"]
    experiment.update(data=spec, held_out=spec, retain=[spec], held_out_share=None)
    for old in ("digest", "sha256", "checksum"):
        description.pop(old, None)
    (folder / DESCRIPTION).write_text(json.dumps(add_checksum(description)))
    for weights in ("pretrained", "result"):
        store = Store(folder / "predictions" / weights)
        for known in answers(store.folder).values():
            store.write(replace(known, source={"data": spec, "options": {}}))
    if not finished:
        (folder / "result.json").unlink()
    return folder


# What is given to each command beside the folder.
ARGUMENTS: dict[str, list[str]] = {
    "analyse": ["--device", "cpu"],
    "eval": ["--data", "{data}", "--device", "cpu"],
    "export": ["--out", "{out}/export"],
    "merge": ["--wise", "0.5", "--device", "cpu"],
    "predict": ["{data}", "--device", "cpu"],
    "report": ["--out", "{out}/report.html"],
    "resume": ["--device", "cpu"],
    "try": [],
}


def taking_folders() -> list[str]:
    """The commands whose first argument is a folder of a run or a model."""
    names = []
    for module in iter_modules(commands.__path__):
        source = Path(commands.__path__[0], f"{module.name}.py").read_text(encoding="utf-8")
        functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
        arguments = next(node.args for node in functions if node.name == "main")
        if any(each.arg in ("run", "runs", "model") for each in arguments.posonlyargs):
            names.append(module.name)
    return names


def test_every_command_that_takes_a_folder_is_tried() -> None:
    assert sorted(taking_folders()) == sorted(ARGUMENTS)


@pytest.mark.parametrize("spec", [SPECS[1], SPECS[7], SPECS[9], "hf:stranger/beacon", "//host/share/x.tar"])
@pytest.mark.parametrize("command", ARGUMENTS)
def test_no_command_follows_a_stranger_s_folder(
    command: str, spec: str, places: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tracer.report.interactive import page

    monkeypatch.setattr(page, "served", lambda *_: pytest.fail("served"))
    own = [each.format(data=places["data"], out=tmp_path) for each in ARGUMENTS[command]]
    for finished in (True, False):
        folder = stranger(places, tmp_path / f"run-{finished}", spec, finished)
        with watched(tmp_path, places["data"], places["model"]):
            code = main([command, str(folder), *own])
        assert code == (
            0 if command in ("eval", "predict", "report") or (command == "export" and finished) else 2
        )


@pytest.mark.parametrize("name", ["hf_tokenizer_name", "hf_model_name"])
def test_an_export_that_names_a_text_tower_of_the_hub_is_refused(
    name: str, places: dict[str, Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(places["export"], tmp_path / "export")
    for beside in ("tokenizer_config.json", "config.json"):  # which would be read instead
        (folder / beside).unlink(missing_ok=True)
    file = folder / "open_clip_config.json"
    config = json.loads(file.read_text())
    config["model_cfg"]["text_cfg"][name] = "stranger/beacon"
    file.write_text(json.dumps(config))
    with watched(tmp_path), pytest.raises(UserError, match="names stranger/beacon of the Hugging Face hub"):
        locate(str(folder))
    with watched(tmp_path, places["data"]):
        assert main(["eval", str(folder), "--data", str(places["data"]), "--device", "cpu"]) == 2


def test_a_run_of_a_model_of_the_hub_is_refused(places: dict[str, Path], tmp_path: Path) -> None:
    folder = stranger(places, tmp_path / "run", "photos")
    description = json.loads((folder / DESCRIPTION).read_text())
    description["experiment"]["model"] = "hf-hub:stranger/beacon"
    for old in ("digest", "sha256", "checksum"):
        description.pop(old, None)
    (folder / DESCRIPTION).write_text(json.dumps(add_checksum(description)))
    for command in ("eval", "export"):
        own = [each.format(data=places["data"], out=tmp_path) for each in ARGUMENTS[command]]
        with watched(tmp_path, places["data"]):
            assert main([command, str(folder), *own]) == 2


def test_the_watch_sees_a_request_and_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Reached), watched():
        socket.getaddrinfo("localhost", 80)
    with pytest.raises(AssertionError), watched():
        (tmp_path / "file").read_text()
