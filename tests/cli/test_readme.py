"""The front page: one screen whose links lead somewhere, here and on PyPI; and the Python of the pages runs."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

import tracer

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_link_leads_somewhere() -> None:
    for page in ("README.md", "CONTRIBUTING.md"):
        links = re.findall(r"\]\(([^)#:]+)\)", (ROOT / page).read_text(encoding="utf-8"))
        assert [link for link in links if not (ROOT / link).exists()] == [], page


def test_it_is_one_screen() -> None:
    assert len(README.splitlines()) <= 42
    assert README.count("![") == 1


@pytest.mark.parametrize("repository", ["", "owner/tracer"])
def test_its_links_lead_somewhere_on_pypi(repository: str, monkeypatch: pytest.MonkeyPatch) -> None:
    interface = SimpleNamespace(MetadataHookInterface=object)  # hatchling is there when a wheel is built
    monkeypatch.setitem(sys.modules, "hatchling.metadata.plugin.interface", interface)
    from hatch_build import described

    text = described(README, repository, "v9.9.9")
    links = re.findall(r"\]\((.*?)\)", text)
    assert [link for link in links if not link.startswith("https://")] == []
    assert ("https://github.com/owner/tracer/blob/v9.9.9/docs/fit.md" in links) == bool(repository)
    assert text.count("![") == bool(repository)
    assert "Quick start" in text


def test_the_verbs_of_the_page_on_python_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As printed, with a small model in the place of ViT-B-16."""
    rng = np.random.default_rng(0)
    for folder in ("photos", "test-photos"):
        for label in ("cat", "dog"):
            (tmp_path / folder / label).mkdir(parents=True)
            for number in range(12):
                pixels = rng.integers(0, 255, (32, 32, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(tmp_path / folder / label / f"{number}.png")
    page = (ROOT / "docs" / "from-python.md").read_text(encoding="utf-8")
    code, use = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[:2]
    shutil.copy(tmp_path / "photos" / "cat" / "0.png", tmp_path / "photo.jpg")
    small = 'model="tiny-32", pretrained="none", steps=2, device="cpu"'
    assert 'model="ViT-B-16"' in code
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(code.replace('model="ViT-B-16"', small), names)
    exec(use, names)
    assert sorted(set(names["answers"].names)) <= ["cat", "dog"]  # pyright: ignore
    assert isinstance(names["run"], tracer.Run)
    assert (tmp_path / "my-model" / "open_clip_config.json").exists()
    for verb in ("finetune", "evaluate", "merge", "export", "load"):
        assert f"tracer.{verb}(" in code


def test_the_version_is_said_once() -> None:
    assert f"version: {tracer.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    ruff = re.search(r"ruff==([\d.]+)", (ROOT / "constraints.txt").read_text(encoding="utf-8"))
    assert ruff is not None
    assert f"rev: v{ruff[1]}\n" in (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
