"""A few inputs of every kind of fault: `make faults` tries them all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest
from filelock import FileLock

from studies.faults.kinds import killed
from studies.faults.life import End
from studies.faults.site import Site
from studies.faults.suite import Tally, kinds
from studies.faults.table import markdown, merged, page, row, written
from studies.faults.verdict import lost, refused, survived

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def found(common: Path) -> dict[str, Any]:
    """What the quick suite found, behind one start of Python; test processes side by side share it."""
    told = common / "faults.json"
    with FileLock(common / "faults.lock"):
        if not told.exists():
            command = [sys.executable, "-m", "faults", "--quick", "--jobs", "1", "--out", str(told)]
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            done = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
            )
            assert told.exists(), done.stderr
    return {each["name"]: each for each in json.loads(told.read_text())["faults"]}


@pytest.mark.parametrize("kind", kinds())
def test_a_few_of_every_kind_are_survived_or_refused_clearly(found: dict[str, Any], kind: str) -> None:
    assert found[kind]["losses"] == []
    assert found[kind]["tried"] == found[kind]["survived"] + found[kind]["refused"] > 0


def test_a_loss_is_counted_and_stands_in_the_table() -> None:
    tally = Tally("one", "A fault")
    for verdict in (survived("a"), refused("b"), refused("c"), lost("d", "gone")):
        tally.add(verdict)
    assert [verdict.what for verdict in tally.lost] == ["d"]
    rows = merged(written([{"name": "one", "tried": 9}]), [row(tally, 0, [])])
    assert "| A fault | 4 | 1 | 2 | 1 |" in markdown(rows)
    text = page("before\n<!-- faults -->\nold\n<!-- /faults -->\nafter", rows)
    assert "old" not in text
    assert text.startswith("before\n")
    assert text.endswith("\nafter")


def test_a_command_that_is_not_killed_often_enough_is_a_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unharmed = killed.WORKS[0]._replace(
        name="stone", go=lambda *_, **__: End(0, "", 0.0), done=lambda _: False, wrong=lambda *_: ""
    )
    monkeypatch.setattr(killed, "WORKS", (unharmed,))
    verdicts = list(killed.trials(Site(tmp_path, Random(0), quick=True)))
    assert verdicts == [lost("stone", "killed 0 times where 3 were wanted: too little was tried")]


@pytest.mark.parametrize(
    ("told", "wrong"),
    [({"alpha": 0.5}, ""), ({"alpha": 1.0}, "merges/mixed.json differs"), (None, "differs")],
)
def test_what_a_merge_says_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: dict[str, float] | None, wrong: str
) -> None:
    site = Site(tmp_path / "site", Random(0), quick=True)
    places = {"peace": {"alpha": 0.5}, "mine": told}
    for name, story in places.items():
        for folder in ("weights", "merges"):
            (tmp_path / name / folder).mkdir(parents=True)
        (tmp_path / name / "weights" / "mixed.safetensors").touch()
        if story is not None:
            (tmp_path / name / "merges" / "mixed.json").write_text(json.dumps({**story, "runs": [name]}))
    monkeypatch.setattr(killed, "_in_peace", lambda *_: tmp_path / "peace")
    site.__dict__["run"] = tmp_path / "peace"
    found = killed._merged(site, tmp_path / "mine")
    assert wrong in found
    assert bool(wrong) == bool(found)


def test_a_lost_input_fails_the_suite(tmp_path: Path) -> None:
    """A kind that loses something makes the command exit with 1 and name it."""
    code = (
        "import sys, types, faults.suite as suite, faults.__main__ as command\n"
        "from faults.verdict import lost\n"
        "kind = types.ModuleType('bad', 'A bad one.')\n"
        "kind.trials = lambda site: iter([lost('the input', 'the reason')])\n"
        "command.kinds = suite.kinds = lambda: {'bad': kind}\n"
        "sys.argv = ['faults', '--jobs', '1']\n"
        "command.prepare = lambda: None\n"
        "sys.exit(command.main())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "LOST bad: the input: the reason" in done.stderr
    assert "| A bad one | 1 | 0 | 0 | 1 |" in done.stdout
