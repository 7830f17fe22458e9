"""Every import is declared in pyproject.toml, and every requirement is imported."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Where the module has another name.
DISTRIBUTIONS = {"PIL": "pillow", "open_clip": "open-clip-torch", "mlflow": "mlflow-skinny"}
INLINE = {"resvg_py"}  # declared in the header of studies/emojishift/build.py, which alone needs it
# Commands and plugins.
TOOLS = {
    "pyrefly",
    "pytest-xdist",
    "ruff",
    "mkdocs-material",
    "mkdocstrings-python",
    "nbclient",
    "ipykernel",
}
BY_NAME = {"mlflow-skinny", "tensorboard", "wandb"}  # sinks, which `--log NAME` imports by name
OWN = {"tracer", "studies"} | {path.stem for path in (*(ROOT / "tests").rglob("*"), *ROOT.glob("*.py"))}


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def names(requirements: list[str]) -> set[str]:
    return {normalized(re.split(r"[<>=!~\[; ]", each)[0]) for each in requirements}


BASE = names(PROJECT["dependencies"])
EXTRAS = {extra: names(each) - {PROJECT["name"]} for extra, each in PROJECT["optional-dependencies"].items()}


def imports(folder: str) -> Iterator[tuple[Path, str]]:
    """Files and the distributions that they import, the standard library and our own modules left out."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for module in {module.partition(".")[0] for module in modules}:
                if module not in sys.stdlib_module_names | OWN | INLINE:
                    yield path, normalized(DISTRIBUTIONS.get(module, module))


def test_the_package_imports_what_it_requires_or_names_the_extra() -> None:
    for path, name in imports("tracer"):
        extras = [extra for extra, members in EXTRAS.items() if name in members]
        text = path.read_text(encoding="utf-8")
        named = any(f"tracer-clip[{extra}]" in text for extra in extras)
        assert name in BASE or named, f"{path} imports {name}"


@pytest.mark.parametrize("folder", ["studies", "tests", "examples"])
def test_studies_and_tests_import_what_is_declared(folder: str) -> None:
    assert not {name for _, name in imports(folder)} - BASE.union(*EXTRAS.values())


def test_every_requirement_is_imported() -> None:
    package = {name for _, name in imports("tracer")}
    everywhere = package | {
        name for folder in ("studies", "tests", "examples") for _, name in imports(folder)
    }
    assert not BASE - package
    assert not set().union(*EXTRAS.values()) - TOOLS - BY_NAME - everywhere
