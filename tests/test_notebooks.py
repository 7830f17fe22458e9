"""The notebooks are Python that uses public names only, and hold no outputs; `make notebooks` runs them."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

import pytest

import tracer

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
OTHERS = {"PIL", "matplotlib", "torch"}


def test_there_are_four() -> None:
    assert len(NOTEBOOKS) == 4


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_its_code_compiles_and_uses_public_names_only(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    tree = ast.parse("\n".join("".join(cell["source"]) for cell in code))
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
