"""A signal under `torchrun`: all processes save at the same step and say how to go on."""

from __future__ import annotations

import os
import shlex
import signal
import time
from pathlib import Path

import pytest
from starting import own_frames
from test_lost import command, newest
from torchrun import Launch, forked, ranks, running, started

HANDLED = ["--signals-to-handle", "SIGTERM,SIGINT,SIGHUP,SIGUSR1"]
SLOW = pytest.mark.slow  # each starts Python three times
CASES = [
    pytest.param(forked, signal.SIGTERM, [], id="TERM, forked"),
    pytest.param(started, signal.SIGTERM, [], id="TERM", marks=SLOW),
    pytest.param(started, signal.SIGINT, [], id="INT", marks=SLOW),
    pytest.param(started, signal.SIGHUP, [], id="HUP", marks=SLOW),
    pytest.param(started, signal.SIGUSR1, HANDLED, id="USR1", marks=SLOW),
    pytest.param(started, signal.SIGUSR1, [], id="USR1 ends the launcher", marks=SLOW),
    pytest.param(started, signal.SIGKILL, [], id="KILL ends the launcher", marks=SLOW),
]


def trains(run: Path) -> bool:
    """Whether a step is logged; the first line is the score before training."""
    log = run / "log.jsonl"
    return log.exists() and '"kind": "train"' in log.read_text()


@pytest.mark.parametrize(("launch", "number", "options"), CASES)
def test_a_signal_to_the_launcher_and_its_group_saves(
    tmp_path: Path, launch: Launch, number: signal.Signals, options: list[str]
) -> None:
    process = launch([*command(tmp_path), "--workers", "2", "--save-every", "100000"], options)
    run, deadline = tmp_path / "run", time.monotonic() + 120
    while not trains(run) and running(process.child) and time.monotonic() < deadline:
        time.sleep(0.02)
    both = ranks(process.child)
    os.killpg(process.child, number)
    while any(map(running, both.values())) and time.monotonic() < deadline:  # they may outlive the launcher
        time.sleep(0.02)
    code, output, _ = process.wait()
    assert sorted(both) == [0, 1], output
    assert code != 0
    assert newest(run) > 0, output
    assert f"saved. Go on with: tracer resume {shlex.quote(str(run))}" in output.replace("\n", ""), output
    assert not own_frames(output), output  # the launcher shows its own trace, we show none
