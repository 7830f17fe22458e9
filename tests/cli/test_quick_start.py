"""The quick start's commands as printed, on each kind of data, up to open_clip in a process of its own."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from starting import environment
from sweep.test_sweep import NANO

from tracer.cli.app import main
from tracer.models.open_clip_compat import open_clip

ROOT = Path(__file__).parents[2]
COLOURS = {"fire truck": (200, 30, 30), "leaf": (30, 160, 40), "sky": (60, 90, 220)}
SPLITS = {"train": 12, "val": 10, "test": 10}  # images of each class
SMALL = "--pretrained none --templates name --augment none --steps 6 --batch 12 --lr 3e-3 --device cpu"
SENTENCE = re.compile(
    r"^(Task|Test|Own|[\w./-]+)\b.*\d+\.\d → \d+\.\d % of 30 (held-out )?images.*\.\nNext: tracer \w+ .+\n$",
    re.MULTILINE,
)


def pictures() -> list[tuple[str, str, Image.Image]]:
    """Split, class and picture of noise around the colour of the class."""
    rng = np.random.default_rng(0)
    return [
        (split, name, Image.fromarray(np.clip(rng.normal(colour, 60, (20, 24, 3)), 0, 255).astype(np.uint8)))
        for split, count in SPLITS.items()
        for name, colour in COLOURS.items()
        for _ in range(count)
    ]


def folder() -> str:
    for number, (split, name, picture) in enumerate(pictures()):
        Path("photos", split, name).mkdir(parents=True, exist_ok=True)
        picture.save(Path("photos", split, name, f"{number} é.JPG"))
    return "photos/"


def table() -> str:
    Path("images").mkdir()
    with Path("photos.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["Unnamed: 0", "file_name", "species", "photographer", "split"])
        for number, (split, name, picture) in enumerate(pictures()):
            picture.save(Path("images", f"{number}.png"))
            rows.writerow([number, f"images/{number}.png", name, "someone", split])
    return "photos.csv"


def parquet() -> str:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    rows = []
    for split, name, picture in pictures():
        file = io.BytesIO()
        picture.save(file, "PNG")
        rows.append({"image": {"bytes": file.getvalue(), "path": None}, "label": name, "split": split})
    write_table(pyarrow.Table.from_pylist(rows), "photos.parquet")
    return "photos.parquet"


def commands(data: str, label: str) -> list[list[str]]:
    """The lines of the page's block that call tracer, with these data, a small model and few steps."""
    text = (ROOT / "docs" / "quick-start.md").read_text(encoding="utf-8")
    (block,) = (part for part in text.split("```") if "\ntracer check" in part)
    lines = [line.partition("#")[0].strip() for line in block.splitlines() if line.startswith("tracer ")]
    names = {
        "test-photos/": data,
        "new-photos/": data,
        "photos/": data,
        "runs/photos": "run",
        "my-model": "my-model",
    }
    small = f"{label} {SMALL} --model nano.json"
    extra = {"check": label, "train": small, "merge": "--device cpu", "predict": "--device cpu"}
    return [
        [*(names.get(word, word) for word in shlex.split(line)[1:]), *extra.get(line.split()[1], "").split()]
        for line in lines
    ]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all exports; a test's own folder is removed when it has passed."""
    return tmp_path_factory.mktemp("exported")


@pytest.mark.parametrize("data", [folder, table, parquet])
def test_the_commands_of_the_quick_start(
    data,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    exported: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(open_clip, "IMAGENET_CLASSNAMES", open_clip.IMAGENET_CLASSNAMES[:8])
    Path("nano.json").write_text(json.dumps(NANO))
    label = "--label-column species" if data is table else ""
    walked = commands(data(), label)
    assert [each[0] for each in walked] == ["check", "train", "eval", "report", "merge", "export", "predict"]
    for command in walked:
        assert main(command) == 0, command
        shown = capsys.readouterr().out
        if command[0] == "check":
            assert "36" in shown
            assert "30" in shown
        if command[0] in ("train", "eval", "merge"):
            assert SENTENCE.search(shown), shown
            assert "**" not in shown  # tables for a terminal, not Markdown
            assert "ece_batched" not in shown
    with Path("answers.csv").open(newline="", encoding="utf-8") as file:
        assert {row["class"] for row in csv.DictReader(file)} <= set(COLOURS)
    assert Path("run", "report.html").stat().st_size < 5_000_000
    assert json.loads(Path("run", "result.json").read_text())["changes"]["task"]["n"] == 30
    Path("my-model").rename(exported / data.__name__)


def test_the_exports_load_in_open_clip_in_another_process(exported: Path) -> None:
    """Runs after the walks above, in the same environment, without tracer."""
    if not list(exported.iterdir()):
        pytest.skip("no walk has ended in an export")
    script = [
        "import sys, open_clip, torch",
        *(
            f"model = open_clip.create_model({f'local-dir:{folder}'!r}).eval(); "
            "assert model.encode_image(torch.zeros(1, 3, 28, 28)).isfinite().all()"
            for folder in exported.iterdir()
        ),
        "assert 'tracer' not in sys.modules",
    ]
    command = [sys.executable, "-c", "\n".join(script)]
    done = subprocess.run(command, cwd="/", env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
