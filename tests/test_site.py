"""The site builds without a warning: links and anchors hold, every page is in it, every public name is documented."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import tracer

ROOT = Path(__file__).parents[1]


def build(source: Path, target: Path) -> subprocess.CompletedProcess[str]:
    """As `make site` does; `--quiet` would hide the warnings from `--strict`."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(target)]
    environment = {"NO_MKDOCS_2_WARNING": "1", "PATH": "/usr/bin:/bin"}
    return subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    result = build(ROOT, folder)
    assert result.returncode == 0, result.stderr
    return folder


@pytest.mark.parametrize("link", ["nowhere.md", "other.md#nowhere", "/other.md"])
def test_a_broken_link_fails_the_build(link: str, tmp_path: Path) -> None:
    """With what mkdocs.yml has to say about links, on a site of two pages."""
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    (rules,) = re.findall(r"^validation:\n(?:  .*\n)+", config, re.MULTILINE)
    (tmp_path / "mkdocs.yml").write_text(f"site_name: x\n{rules}")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "other.md").write_text("# Other\n")
    (tmp_path / "docs" / "index.md").write_text("[other](other.md#other)\n")
    assert build(tmp_path, tmp_path / "site").returncode == 0
    (tmp_path / "docs" / "index.md").write_text(f"[other]({link})\n")
    assert build(tmp_path, tmp_path / "site").returncode == 1


class Page(HTMLParser):
    """The ids of a page, and what it loads: scripts, styles, images and fonts, which no link is."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.loaded: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if name := values.get("id"):
            self.ids.add(name)
        if tag in ("script", "img") and values.get("src"):
            self.loaded.append(values["src"] or "")
        if tag == "link" and values.get("rel") in ("stylesheet", "icon", "preload"):
            self.loaded.append(values["href"] or "")


def test_the_site_has_every_page(site: Path) -> None:
    pages = {page.stem for page in (ROOT / "docs").glob("*.md")}
    assert pages | {"index", "contributing", "changelog", "reference"} <= {
        page.stem for page in site.glob("*.html")
    }


def test_the_reference_has_every_public_name(site: Path) -> None:
    ids = Page(site / "reference.html").ids
    for name in tracer.__all__:
        place = f"{tracer._PLACES[name]}.{name}" if name in tracer._PLACES else f"tracer{name}"
        assert place in ids, name


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    for page in site.glob("*.html"):
        loaded = Page(page).loaded
        assert loaded
        assert [each for each in loaded if re.match(r"(https?:)?//", each)] == [], page.name


@pytest.mark.parametrize("name", [name for name in tracer.__all__ if name in tracer._PLACES])
def test_every_public_name_is_documented(name: str) -> None:
    """With its methods and properties; those of a policy are described once, by `Teacher`."""
    file = ROOT / (tracer._PLACES[name].replace(".", "/") + ".py")
    nodes = ast.parse(file.read_text(encoding="utf-8")).body
    (node,) = [each for each in nodes if getattr(each, "name", None) == name]
    assert isinstance(node, ast.FunctionDef | ast.ClassDef)
    assert len(ast.get_docstring(node) or "") > 20
    members = node.body if isinstance(node, ast.ClassDef) else []
    methods = {
        each.name: each for each in members if isinstance(each, ast.FunctionDef) and each.name[0] != "_"
    }
    described = set(re.findall(r"`(\w+)`", tracer.Teacher.__doc__ or ""))
    assert [each for each in methods if each not in described and not ast.get_docstring(methods[each])] == []
