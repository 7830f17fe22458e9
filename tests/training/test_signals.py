"""A signal saves a run and ends it with 128 + n, wherever it arrives; the same run then ends in the same weights."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from stopping import SIGNALS, everything


@pytest.fixture(scope="session")
def stops(common: Path) -> dict[str, Any]:
    """What happened to each run; test processes side by side share one report."""
    with FileLock(common / "stops.lock"):
        report = common / "stops" / "stops.json"
        if not report.exists():
            report.parent.mkdir(exist_ok=True)
            report.write_text(json.dumps(everything(report.parent)))
    return json.loads(report.read_text())


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("target", ["process", "group"])
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_signal_saves_and_what_is_resumed_ends_in_the_same_weights(
    stops: dict[str, Any], number: signal.Signals, target: str, workers: int
) -> None:
    facts = stops[f"{number.name} {target} {workers}"]
    assert facts["code"] == 128 + number, facts["told"]
    assert "Go on with: tracer resume" in facts["told"]
    assert "Traceback" not in facts["told"]
    assert len(facts["saved"]) == 1
    assert facts.get("resumed", 0) == 0
    assert facts.get("weights", stops["peaceful"]["weights"]) == stops["peaceful"]["weights"]


def test_a_killed_run_is_resumed_at_once_though_its_workers_live_on(stops: dict[str, Any]) -> None:
    facts = stops["killed"]
    assert facts["workers"] == 2
    assert facts["code"] == -signal.SIGKILL
    assert facts["resumed"] == 0, facts["told"]
    assert facts["weights"] == stops["peaceful"]["weights"]


def test_the_death_of_a_worker_is_a_sentence_and_the_last_checkpoint_is_kept(stops: dict[str, Any]) -> None:
    facts = stops["bereft"]
    assert facts["code"] == 2, facts["told"]
    assert "a process that reads images has ended" in facts["told"]
    assert "tracer resume" in facts["told"]
    assert "Traceback" not in facts["told"]
    assert facts["saved"]


def test_a_signal_does_not_wait_for_an_evaluation(stops: dict[str, Any]) -> None:
    facts = stops["evaluating"]
    assert facts["code"] == 128 + signal.SIGTERM, facts["told"]
    assert facts["saved"]
    assert facts["seconds"] < 60


def test_a_signal_that_was_ignored_from_the_start_stays_ignored(stops: dict[str, Any]) -> None:
    assert stops["ignored"]["code"] == 0, stops["ignored"]["told"]


def test_the_same_signal_twice_does_not_lose_the_checkpoint(stops: dict[str, Any]) -> None:
    """A scheduler signals every process, and the launcher forwards what it has received."""
    facts = stops["twice"]
    assert facts["code"] == 128 + signal.SIGTERM, facts["told"]
    assert len(facts["saved"]) == 1
