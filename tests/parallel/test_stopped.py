"""A signal under `torchrun`: all processes save at the same step and say how to go on."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest
from starting import environment, own_frames
from test_lost import LAUNCHED, command, newest

HANDLED = ["--signals-to-handle", "SIGTERM,SIGINT,SIGHUP,SIGUSR1"]
SLOW = pytest.mark.slow  # each starts Python three times
CASES = [
    pytest.param(signal.SIGTERM, [], id="TERM"),
    pytest.param(signal.SIGINT, [], id="INT", marks=SLOW),
    pytest.param(signal.SIGHUP, [], id="HUP", marks=SLOW),
    pytest.param(signal.SIGUSR1, HANDLED, id="USR1", marks=SLOW),
    pytest.param(signal.SIGUSR1, [], id="USR1 ends the launcher", marks=SLOW),
    pytest.param(signal.SIGKILL, [], id="KILL ends the launcher", marks=SLOW),
]


def trains(run: Path) -> bool:
    """Whether a step is logged; the first line is the score before training."""
    log = run / "log.jsonl"
    return log.exists() and '"kind": "train"' in log.read_text()


@pytest.mark.parametrize(("number", "options"), CASES)
def test_a_signal_to_the_launcher_and_its_group_saves(
    tmp_path: Path, number: signal.Signals, options: list[str]
) -> None:
    arguments = [*command(tmp_path), "--workers", "2", "--save-every", "100000"]
    process = subprocess.Popen(
        [*LAUNCHED[:4], *options, *LAUNCHED[4:], *arguments],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    run, deadline = tmp_path / "run", time.monotonic() + 120
    while not trains(run) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, number)
    output, _ = process.communicate(timeout=120)  # until the last process has closed it
    assert process.returncode != 0
    assert newest(run) > 0, output
    assert f"saved. Go on with: tracer resume {shlex.quote(str(run))}" in output.replace("\n", ""), output
    assert not own_frames(output), output  # the launcher shows its own trace, we show none
