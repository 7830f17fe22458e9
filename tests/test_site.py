"""The site has every page, and a reference of every public name with its docstring; `make site` checks the links."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import tracer

ROOT = Path(__file__).parents[1]
NAV = re.findall(
    r"^ +- .+: (\S+\.md)$|^  - .+: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.M
)
PAGES = {first or second for first, second in NAV}
GENERATED = {"index.md", "contributing.md", "changelog.md", "reference.md"}


def test_every_page_is_in_the_navigation() -> None:
    pages = {page.name for page in (ROOT / "docs").glob("*.md")}
    assert pages | GENERATED == PAGES
    assert len(NAV) == len(PAGES)


def test_a_link_into_the_pages_has_a_target() -> None:
    """Files only; `make site` also checks the anchors."""
    for page in (ROOT / "docs").glob("*.md"):
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        links = re.findall(r"(?<!!)\]\(([^)#:\s]+)[^):\s]*\)", text)
        assert [link for link in links if not (page.parent / link).exists()] == [], page.name


@pytest.mark.parametrize("name", [name for name in tracer.__all__ if name in tracer._PLACES])
def test_every_public_name_has_a_docstring(name: str) -> None:
    file = ROOT / (tracer._PLACES[name].replace(".", "/") + ".py")
    nodes = ast.parse(file.read_text(encoding="utf-8")).body
    (node,) = [each for each in nodes if getattr(each, "name", None) == name]
    assert isinstance(node, ast.FunctionDef | ast.ClassDef)
    assert len(ast.get_docstring(node) or "") > 20


def test_every_public_name_is_in_the_reference() -> None:
    pytest.importorskip("mkdocs", reason="the site is not installed: pip install 'tracer-clip[docs]'")
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("site_hooks", ROOT / "docs" / "site.py")
    assert spec is not None
    assert spec.loader is not None
    hooks = module_from_spec(spec)
    spec.loader.exec_module(hooks)
    page = hooks.reference()
    for name in tracer.__all__:
        place = f"{tracer._PLACES[name]}.{name}" if name in tracer._PLACES else tracer._MODULES[name]
        assert f"::: {place}\n" in page
    assert set(hooks.PAGES) | {"reference.md"} == GENERATED
    links = hooks.on_page_markdown("[x](../tracer/a.py) [`studies/b`](../studies/b)")
    assert links == "x (`tracer/a.py`) `studies/b`"
