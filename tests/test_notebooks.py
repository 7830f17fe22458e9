"""Every cell of every notebook runs; the notebooks use public names only, and hold no outputs.

The cells run in this process, which spares a kernel's start, with a smaller model and over few names of ImageNet
(conftest.py); `make notebooks` runs them as they are, in kernels of their own.
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from subprocess import CompletedProcess
from subprocess import run as subprocess_run
from typing import Any

import pytest

import tracer
from studies.faults.process import run_command

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
OTHERS = {"PIL", "matplotlib", "torch"}


def code(path: Path) -> list[dict[str, Any]]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def run_forked(command: list[str], **how: Any) -> CompletedProcess[str]:
    """`subprocess.run`, which forks `python -m tracer ARGUMENTS`: that spares the start of Python."""
    if list(command[:3]) != [sys.executable, "-m", "tracer"]:
        return subprocess_run(command, **how)
    assert how["check"]
    ended = run_command(command[3:])
    assert ended.code == 0, ended.output
    return CompletedProcess(command, ended.code, ended.output, "")


def test_there_are_four() -> None:
    assert len(NOTEBOOKS) == 4


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_runs(path: Path, tmp_path: Path, minute: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subprocess.run", run_forked)
    monkeypatch.setenv("MPLBACKEND", "agg")
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in code(path):
        source = "".join(cell["source"]).replace('"tiny-28"', repr(minute))
        source = source.replace("mkdtemp()", f"mkdtemp(dir={str(tmp_path)!r})")  # where pictures are drawn
        body = ast.parse(source, str(path)).body
        shown = [ast.Expression(body.pop().value)] if isinstance(body[-1], ast.Expr) else []
        exec(compile(ast.Module(body, []), str(path), "exec"), names)
        for each in shown:  # a notebook shows the value of the last line
            value = eval(compile(each, str(path), "eval"), names)
            assert getattr(value, "_repr_html_", value.__repr__)()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_its_code_uses_public_names_only(path: Path) -> None:
    cells = code(path)
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)
    tree = ast.parse("\n".join("".join(cell["source"]) for cell in cells))
    used: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules = {alias.name for alias in node.names}
            assert not [module for module in modules if module.startswith("tracer.")]
        elif isinstance(node, ast.ImportFrom):
            modules = {node.module or ""}
            used |= {alias.name for alias in node.names} if node.module == "tracer" else set()
        else:
            modules = set()
        tops = {module.partition(".")[0] for module in modules}
        assert tops <= OTHERS | {"tracer"} | set(sys.stdlib_module_names)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "tracer":
            used.add(node.attr)
    assert used
    assert used <= set(tracer.__all__)
