"""A few inputs of every scenario; `make faults` tries them all."""

from __future__ import annotations

import json
import sys
from math import inf
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest
from filelock import FileLock

from studies.faults import __main__ as command
from studies.faults import suite as suites
from studies.faults.process import Exit, ForkedProcess
from studies.faults.scenarios import killed
from studies.faults.suite import Tally, scenarios
from studies.faults.table import markdown, merged, page, row, to_json
from studies.faults.verdict import lost, refused, survived
from studies.faults.workspace import Workspace


def faults(*arguments: str) -> Exit:
    """`python -m studies.faults ARGUMENTS`, in a forked process."""

    def work() -> int:
        sys.argv = ["faults", *arguments]
        return command.main()

    return ForkedProcess(work).wait(kill_after=inf)


@pytest.fixture(scope="session")
def results(common: Path) -> dict[str, Any]:
    """The results of `--quick`, which parallel test processes share."""
    file = common / "faults.json"
    with FileLock(common / "faults.lock"):
        if not file.exists():
            done = faults("--quick", "--jobs", "1", "--out", str(file))
            assert file.exists(), done.output
    return {each["name"]: each for each in json.loads(file.read_text())["faults"]}


@pytest.mark.slow  # half a minute of one core
@pytest.mark.parametrize("scenario", scenarios())
def test_a_few_inputs_of_every_scenario_are_survived_or_refused_clearly(
    results: dict[str, Any], scenario: str
) -> None:
    assert results[scenario]["losses"] == []
    assert results[scenario]["tried"] == results[scenario]["survived"] + results[scenario]["refused"] > 0


def test_a_loss_is_counted_and_stands_in_the_table() -> None:
    tally = Tally("one", "A fault")
    for verdict in (survived("a"), refused("b"), refused("c"), lost("d", "gone")):
        tally.add(verdict)
    assert [verdict.what for verdict in tally.lost] == ["d"]
    rows = merged(to_json([{"name": "one", "tried": 9}]), [row(tally, 0, [])])
    assert "| A fault | 4 | 1 | 2 | 1 |" in markdown(rows)
    text = page("before\n<!-- faults -->\nold\n<!-- /faults -->\nafter", rows)
    assert "old" not in text
    assert text.startswith("before\n")
    assert text.endswith("\nafter")


def test_a_command_that_is_not_killed_often_enough_is_a_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unharmed = killed.COMMANDS[0]._replace(
        name="unharmed", start=lambda *_, **__: Exit(0, "", 0.0), done=lambda _: False, wrong=lambda *_: ""
    )
    monkeypatch.setattr(killed, "COMMANDS", (unharmed,))
    verdicts = list(killed.trials(Workspace(tmp_path, Random(0), quick=True)))
    assert verdicts == [lost("unharmed", "killed only 0 times instead of 3")]


@pytest.mark.parametrize(
    ("record", "wrong"),
    [({"alpha": 0.5}, ""), ({"alpha": 1.0}, "merges/mixed.json differs"), (None, "differs")],
)
def test_the_record_of_a_merge_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record: dict[str, float] | None, wrong: str
) -> None:
    workspace = Workspace(tmp_path / "workspace", Random(0), quick=True)
    records = {"reference": {"alpha": 0.5}, "mine": record}
    for name, content in records.items():
        for folder in ("weights", "merges"):
            (tmp_path / name / folder).mkdir(parents=True)
        (tmp_path / name / "weights" / "mixed.safetensors").touch()
        if content is not None:
            (tmp_path / name / "merges" / "mixed.json").write_text(json.dumps({**content, "runs": [name]}))
    monkeypatch.setattr(killed, "_undisturbed", lambda *_: tmp_path / "reference")
    workspace.__dict__["finished_run"] = tmp_path / "reference"
    difference = killed._merged(workspace, tmp_path / "mine")
    assert wrong in difference
    assert bool(wrong) == bool(difference)


def test_a_lost_input_fails_the_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lost input makes the command exit with 1 and is printed."""
    bad = ModuleType("bad", "A bad one.")
    bad.__dict__["trials"] = lambda workspace: iter([lost("the input", "the reason")])
    for module in (command, suites):
        monkeypatch.setattr(module, "scenarios", lambda: {"bad": bad})
    monkeypatch.setattr(command, "warm_up", lambda folder: None)
    done = faults("--jobs", "1")
    assert done.code == 1, done.output
    assert "LOST bad: the input: the reason" in done.output
    assert "| A bad one | 1 | 0 | 0 | 1 |" in done.output
