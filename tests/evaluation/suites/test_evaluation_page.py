"""`docs/evaluation.md` says what is so: sizes, places, kinds and flags are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tracer.cli.app import main
from tracer.evaluation.suites import SUITES
from tracer.evaluation.suites.corruptions import KINDS
from tracer.evaluation.suites.imagenet import FOLDERS, SETS
from tracer.evaluation.suites.shift import ROLES
from tracer.evaluation.suites.synsets import subset

PAGE = (Path(__file__).parents[3] / "docs" / "evaluation.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("key", SETS)
def test_sizes_and_places(key: str) -> None:
    (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{key}` |")]
    _, _, images, classes, places, _ = (cell.strip() for cell in line.split("|"))
    assert int(images.replace(" ", "")) == SETS[key].size
    assert int(classes) == (113 if key == "objectnet" else len(subset(SETS[key].classes)))
    assert tuple(re.findall("`(.+?)`", places.split(", with")[0])) == FOLDERS[key]


def test_names() -> None:
    for name in (*SUITES, *KINDS, *ROLES):
        assert f"`{name}`" in PAGE


def test_flags_exist(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    for command in ("eval", "train"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
    known = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    assert set(re.findall(r"--[a-z-]+", re.sub(r"\|[-:|]+\|", "", PAGE))) <= known


def test_suites_are_listed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    assert main(["list", "suites"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in SUITES)
    assert "--root" in said
