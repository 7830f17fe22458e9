"""Content changed before a resume: pixels, labels, captions, splits, prompts, classes, configs and weights."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

from studies.faults.process import run_command
from studies.faults.verdict import Verdict, lost, refused, survived
from studies.faults.workspace import Workspace, file_hashes
from tracer.core.errors import UserError
from tracer.models.export import export
from tracer.models.student import load
from tracer.runs.experiment import Experiment
from tracer.runs.identity import identity
from tracer.runs.plan import plan
from tracer.runs.run import Run

CONFIG = "open_clip_config.json"


def trials(workspace: Workspace) -> Iterator[Verdict]:
    """What changed is refused by `require`, by resume and train, and has another id; a new time alone is not."""
    template = workspace.new_path("content")
    _write(template)
    export(load("tiny-28", seed=3), template / "model")
    count = workspace.count(3, 420)
    for number in range(count):
        name = workspace.rng.choice(sorted(CHANGES)) if number >= len(CHANGES) else sorted(CHANGES)[number]
        table = workspace.rng.random() < 0.5 or name in TABLES_ONLY
        place = workspace.copy(template, "changed")
        yield _judged(
            workspace, f"{name}, {'a table' if table else 'a folder'}, {number}", place, name, table=table
        )


def _write(place: Path) -> None:
    noise = np.random.default_rng(1)
    rows = []
    for i in range(12):
        label = ("cat", "dog")[i % 2]
        image = place / "photos" / label / f"{i}.png"
        image.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(noise.integers(0, 256, (28, 28, 3), dtype=np.uint8)).save(image)
        split = "val" if i in (4, 5) else "train"
        rows.append(f"photos/{label}/{i}.png,{label},a {label} of number {i},{split}\n")
    (place / "table.csv").write_text("".join(["image,label,caption,split\n", *rows]))
    (place / "prompts.txt").write_text("a photo of a {}\na drawing of a {}\n")
    (place / "names.json").write_text(json.dumps({"cat": "house cat", "dog": "dog"}))
    shutil.copytree(place / "photos", place / "retained")


def _experiment(place: Path, *, table: bool) -> Experiment:
    return Experiment(
        data=str(place / ("table.csv" if table else "photos")),
        model=str(place / "model"),
        templates=str(place / "prompts.txt"),
        classes=str(place / "names.json"),
        retain=(str(place / "retained"),),
        steps=2,
        batch=4,
        precision="fp32",
    )


def _judged(workspace: Workspace, what: str, place: Path, name: str, *, table: bool) -> Verdict:
    asked = _experiment(place, table=table)
    run = Run.create(plan(asked), place / "run")
    before = identity(plan(asked))
    CHANGES[name](place, workspace.rng)
    try:
        settled = plan(asked)
        run.require(settled)
    except UserError as error:
        if name in HARMLESS:
            return lost(what, f"refused: {error}")
        named = any(word in str(error) for word in ("with other", "in its", "damaged", "cannot"))
        if not named:
            return lost(what, f"the message names no change: {error}")
    else:
        if name not in HARMLESS:
            return lost(what, "accepted")
        return survived(what) if identity(settled) == before else lost(what, "another id")
    if workspace.rng.random() < 0.05:  # the command says the same
        files = file_hashes(run.folder)
        result = run_command(["resume", str(run.folder), "--device", "cpu"])
        same = {name: each for name, each in file_hashes(run.folder).items() if name != ".lock"} == files
        if not result.clear_error or not same:
            return lost(what, result.tail)
    return refused(what)


def _image(place: Path, rng: Random, folder: str = "photos") -> Path:
    return rng.choice(sorted((place / folder).rglob("*.png")))


def _pixel(place: Path, rng: Random, folder: str = "photos") -> None:
    path = _image(place, rng, folder)
    with Image.open(path) as image:
        pixels = np.array(image)
    pixels[rng.randrange(28), rng.randrange(28), rng.randrange(3)] ^= 1 << rng.randrange(8)
    Image.fromarray(pixels).save(path)


def _exchange(place: Path, rng: Random) -> None:
    one, two = _image(place, rng), _image(place, rng)
    while two == one:
        two = _image(place, rng)
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)


def _edit(name: str, old: str, new: str) -> Callable[[Path, Random], None]:
    def change(place: Path, rng: Random) -> None:
        del rng
        path = place / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    return change


def _cell(column: int, values: tuple[str, ...]) -> Callable[[Path, Random], None]:
    def change(place: Path, rng: Random) -> None:
        path = place / "table.csv"
        lines = path.read_text().splitlines()
        row = rng.randrange(1, len(lines))
        cells = lines[row].split(",")
        cells[column] = rng.choice([value for value in values if value != cells[column]])
        lines[row] = ",".join(cells)
        path.write_text("\n".join([*lines, ""]))

    return change


def _drop_row(place: Path, rng: Random) -> None:
    path = place / "table.csv"
    lines = path.read_text().splitlines()
    del lines[rng.randrange(1, len(lines))]
    path.write_text("\n".join([*lines, ""]))
    _image(place, rng).unlink()


def _config(change: Callable[[dict[str, Any]], object]) -> Callable[[Path, Random], None]:
    def edit(place: Path, rng: Random) -> None:
        del rng
        path = place / "model" / CONFIG
        config = json.loads(path.read_text())
        change(config)
        path.write_text(json.dumps(config))

    return edit


def _weight(place: Path, rng: Random) -> None:
    path = place / "model" / "open_clip_model.safetensors"
    weights = load_file(path)
    name = rng.choice(
        sorted(name for name, each in weights.items() if each.is_floating_point() and each.numel() > 1)
    )
    with torch.no_grad():
        weights[name].view(-1)[rng.randrange(weights[name].numel())] += 1e-3
    save_file(weights, path)


def _touch(place: Path, rng: Random) -> None:
    path = _image(place, rng)
    path.write_bytes(path.read_bytes())


def _tokenizer(place: Path, rng: Random) -> None:
    (place / "model" / "vocab.txt").write_text(f"{rng.random()}")


TABLES_ONLY = ("a caption", "a label", "a split")
HARMLESS = ("a new time", "the checksum of the weights removed")
CHANGES: dict[str, Callable[[Path, Random], None]] = {
    "one bit of a pixel": _pixel,
    "one bit of a retained pixel": lambda place, rng: _pixel(place, rng, "retained"),
    "two images exchanged": _exchange,
    "an image and a row less": _drop_row,
    "a caption": _cell(2, ("a cat indeed", "a dog indeed")),
    "a label": _cell(1, ("cat", "dog")),
    "a split": _cell(3, ("train", "val")),
    "a template": _edit("prompts.txt", "drawing", "sketch"),
    "a template less": _edit("prompts.txt", "a drawing of a {}\n", ""),
    "a class name": _edit("names.json", "house cat", "wild cat"),
    "the activation": _config(lambda config: config["model_cfg"].update(quick_gelu=True)),
    "the normalisation": _config(lambda config: config["preprocess_cfg"].update(mean=[0.1, 0.2, 0.3])),
    "a weight": _weight,
    "a tokenizer file": _tokenizer,
    "a new time": _touch,
}
