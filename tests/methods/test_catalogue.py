"""The list and the page are the code's own account of itself."""

from __future__ import annotations

import inspect
import re
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from tracer.cli.app import main
from tracer.cli.commands.train import Machine
from tracer.core.batch import Embedding, Scene
from tracer.core.errors import UserError
from tracer.core.metrics import bootstrap
from tracer.data.options import Options
from tracer.methods.base import method, methods, options
from tracer.methods.catalogue import cost, entries, page
from tracer.models import trainable as tune
from tracer.runs.experiment import Experiment, Settings

ROOT = Path(__file__).parents[2]


def test_the_page_is_what_the_code_says() -> None:
    told = (ROOT / "docs" / "methods.md").read_text()
    assert told == page(told), "python -m tracer.methods docs/methods.md"


def test_the_command_that_writes_the_page_is_not_imported() -> None:
    """Python would warn in the middle of the page's own command."""
    assert methods()
    assert "tracer.methods.__main__" not in sys.modules


def test_the_list_names_every_method(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "methods"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in methods())


@pytest.mark.parametrize("name", methods())
def test_a_method_says_where_it_comes_from_and_what_matters(name: str) -> None:
    made = method(name)
    assert made.title
    assert made.year
    kind, _, key = made.paper.partition(":")
    if kind == "ours":
        assert (ROOT / "docs" / key).exists()
    else:
        assert re.fullmatch(r"(arXiv:\d{4}\.\d{5}|openreview:\w+)", made.paper)
    known = {option.name for option in options(name)} | {field.name for field in fields(Settings)}
    assert made.matter
    assert set(made.matter) <= known


@pytest.mark.parametrize("name", methods())
def test_every_option_is_explained_and_its_own(name: str) -> None:
    taken = {field.name for kind in (Settings, Experiment, Machine) for field in fields(kind)}
    for option in options(name):
        assert option.help, option.name
        assert option.name not in taken


@pytest.mark.parametrize("name", methods())
def test_a_method_fits_on_a_screen(name: str) -> None:
    file = Path(inspect.getfile(inspect.unwrap(methods()[name])))
    if file.parent.name == "methods" and name != "tracer":  # the presets of TRACER stand with it
        assert len(file.read_text().splitlines()) <= 60


def test_costs_follow_from_the_stages() -> None:
    assert cost(method("zeroshot")) == ((), 0)
    assert cost(method("flyp")) == ((), 0)
    assert cost(method("l2sp")) == ((), 1)
    assert cost(method("l2sp", strength=0.0)) == ((), 0)
    assert cost(method("carft")) == (("teacher on images",), 1)
    assert cost(method("tracer")) == (("teacher on images", "teacher on texts"), 1)
    assert cost(method("tracer", strength=0.0)).forwards == ()
    assert cost(method("stock", replicas=3)) == (("2 more students",), 3)


def test_the_rows_of_the_page_are_the_entries() -> None:
    rows = [line for line in page("").splitlines() if line.startswith("| ") and "[" in line]
    assert len(rows) == len(entries())
    for entry, row in zip(entries(), rows, strict=True):
        assert all(cell in row for cell in entry)


def example(place: int) -> dict[str, Any]:
    """The names that a block of Python on the page defines."""
    text = (ROOT / "docs" / "add-a-method.md").read_text()
    space: dict[str, Any] = {}
    exec(compile(re.findall(r"```python\n(.*?)```", text, re.DOTALL)[place], "example.py", "exec"), space)
    return space


def test_the_example_of_the_page_is_a_method() -> None:
    own = example(0)["mine"](strength=0.2)
    assert repr(own.stages[0].objective) == "contrastive + 0.2·feature"
    assert isinstance(own.stages[0].tune, tune.All)


def test_the_term_of_the_page_is_a_term() -> None:
    space = example(1)
    unit = torch.eye(2)
    student, teacher = (
        Embedding(unit, unit, torch.tensor(1.0)),
        Embedding(unit.flip(0), unit, torch.tensor(1.0)),
    )
    scene = Scene(student=student, teacher=teacher)
    assert space["image_drift"]()(scene) == 2.0  # orthogonal unit vectors
    assert space["image_drift"]()(Scene(student=student, teacher=student)) == 0.0


def test_the_format_of_the_page_is_read(tmp_path: Path) -> None:
    read_list = example(2)["read_list"]
    Image.new("RGB", (4, 4), "red").save(tmp_path / "a.png")
    (tmp_path / "all.lst").write_text("a.png\tred\na.png\tblue\n")
    examples = read_list(tmp_path / "all.lst", Options())
    assert examples.classes == ("blue", "red")
    assert examples.labels.tolist() == [1, 0]
    assert examples.images[1].getpixel((0, 0)) == (255, 0, 0)
    (tmp_path / "all.lst").write_text("a.png\tred\na.png\n")
    with pytest.raises(UserError, match="line 2"):
        read_list(tmp_path / "all.lst", Options())


def test_the_metric_of_the_page_has_an_interval() -> None:
    measure = example(3)["reciprocal_rank"]
    logits = torch.tensor([[2.0, 1.0, 0.0], [2.0, 1.0, 0.0], [0.0, 1.0, 2.0]])
    label = torch.tensor([0, 1, 0])
    assert measure(logits, label) == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert bootstrap(measure, logits, label, samples=20).low < measure(logits, label)
