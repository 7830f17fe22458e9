"""A process is killed and the launcher starts all again: the command goes on to the result of an undisturbed run."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist
from restarting import MOMENTS, die
from safetensors.torch import load_file
from starting import environment
from test_lost import command

from studies.faults.process import Exit, ForkedProcess, free_port, join_pair
from tracer.cli.app import main
from tracer.parallel import group
from tracer.parallel.group import _meeting
from tracer.parallel.replicated import Replicated
from tracer.runs.record import read

SCRIPT = str(Path(__file__).with_name("restarting.py"))
STEPS, SAVED = 8, 4


def training(folder: Path, name: str) -> list[str]:
    """A run of a few steps, with a checkpoint in their middle."""
    (folder / name).mkdir(parents=True)
    pace = ["--steps", str(STEPS), "--save-every", str(SAVED), "--out", str(folder / name / "run")]
    return [*command(folder), *pace]


def same(one: Path, two: Path) -> None:
    """Both runs have finished with the same bits, and the log of neither tells a step twice."""
    results = [json.loads((run / "result.json").read_text()) for run in (one, two)]
    assert results[0] == results[1]
    # Those of the pretrained model are named by where it lies, which differs.
    written = [
        sorted([*(run / "weights").iterdir(), *(run / "predictions").rglob("*.safetensors")])
        for run in (one, two)
    ]
    for file, other in zip(*written, strict=True):
        first, second = load_file(file), load_file(other)
        assert first.keys() == second.keys()
        assert all(torch.equal(first[name], second[name]) for name in first), file.name
    steps = [line["step"] for line in read(two / "log.jsonl", "train")]
    assert steps == sorted(set(steps))


def forked(deaths: str, start: int, port: int, rank: int, arguments: list[str]) -> int:
    """What `torchrun` sets for a process that it starts for the first time, or again."""
    join_pair(rank, port)
    os.environ |= {"TORCHELASTIC_RESTART_COUNT": str(start), "TORCHELASTIC_USE_AGENT_STORE": "True"}
    die(deaths)
    return main(arguments)


def pair(deaths: str, start: int, port: int, arguments: list[str]) -> list[Exit]:
    """Both processes of one start, when they have ended."""
    both = [ForkedProcess(partial(forked, deaths, start, port, rank, arguments)) for rank in range(2)]
    return [each.wait() for each in both]


def test_killed_processes_that_start_again_end_as_if_undisturbed(tmp_path: Path) -> None:
    """The store of a launcher outlives its processes, and so does what the dead ones have written there."""
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    arguments, deaths = training(tmp_path, "killed"), "middle:1,leaving:0"
    for start in range(2):
        ended = pair(deaths, start, store.port, arguments)
        assert ended[1 - start].killed
        assert ended[start].code == 2, ended[start].output
    last = pair(deaths, 2, store.port, arguments)
    assert [each.code for each in last] == [0, 0], last
    assert ["The run is in" in each.output for each in last] == [True, False]

    arguments = training(tmp_path / "undisturbed", "whole")
    assert [each.code for each in pair("", 0, store.port, arguments)] == [0, 0]
    same(tmp_path / "undisturbed" / "whole" / "run", tmp_path / "killed" / "run")


def test_the_dead_are_not_waited_for_and_nothing_of_theirs_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    store.set("arrived/1", "a process that was killed before they met")
    own = [dist.TCPStore("127.0.0.1", store.port, is_master=False) for _ in range(2)]
    with ThreadPoolExecutor(2) as both:
        names = [list(both.map(_meeting, own, (0, 1), (2, 2))) for _ in range(2)]
    assert names[0][0] == names[0][1] != names[1][0] == names[1][1]

    alarms: list[dist.Store] = []
    stand_in = SimpleNamespace(stop=lambda: None)
    monkeypatch.setattr(group, "Heartbeat", lambda store, *rest: alarms.append(store) or stand_in)
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store.port), "RANK": "0", "WORLD_SIZE": "1"}
    for name, value in {**address, "TORCHELASTIC_USE_AGENT_STORE": "True"}.items():
        monkeypatch.setenv(name, value)
    for _ in range(2):
        world = Replicated("cpu", "fp32")
        world.start_heartbeat(print)
        assert not alarms[-1].check(["silent"])
        alarms[-1].set("silent", "1")  # which ended that start
        world.close()


def test_a_signal_ends_a_process_that_waits_for_others(tmp_path: Path) -> None:
    """In compiled code, where no handler of Python is called; `torchrun` would wait 30 seconds to start anew."""
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    waiting = ForkedProcess(partial(forked, "", 0, store.port, 1, training(tmp_path, "alone")))
    while not store.check(["arrived/1"]):
        time.sleep(0.01)
    os.kill(waiting.child, signal.SIGTERM)
    assert waiting.wait(kill_after=20).code == -signal.SIGTERM


def start(deaths: str, arguments: list[str], where: list[str]) -> subprocess.Popen[str]:
    """One launcher, which may start its processes again three times."""
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "torch.distributed.run",
            *where,
            "--max-restarts=3",
            SCRIPT,
            deaths,
            *arguments,
        ],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def launched(deaths: str, arguments: list[str], *where: str) -> None:
    """Both processes of one launcher, which ends well and none of which it has to kill."""
    launcher = start(deaths, arguments, [*where, "--nproc-per-node=2"])
    output, _ = launcher.communicate(timeout=300)
    assert launcher.returncode == 0, output
    assert "SIGKILL" not in re.sub(r"Signal 9 \(SIGKILL\) received", "", output), output


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed")
    launched("", training(folder, "whole"), "--standalone")
    return folder / "whole" / "run"


TWICE = ["reading:1,middle:0", "first-steps:0,scoring:1", "meeting:0,meeting:1,writing:0"]


@pytest.mark.slow  # each starts Python several times
@pytest.mark.parametrize("deaths", [*(f"{moment}:{rank}" for moment in MOMENTS for rank in (0, 1)), *TWICE])
def test_torchrun_goes_on_by_itself(tmp_path: Path, undisturbed: Path, deaths: str) -> None:
    launched(deaths, training(tmp_path, "killed"), "--standalone")
    same(undisturbed, tmp_path / "killed" / "run")


@pytest.mark.slow
def test_processes_that_read_images_hold_up_nothing(tmp_path: Path, undisturbed: Path) -> None:
    """They are forked from a process, have its connections, and outlive it for some seconds."""
    arguments = [*training(tmp_path, "killed"), "--workers", "2"]
    launched("middle:0,middle:1", arguments, f"--master-port={free_port()}")
    same(undisturbed, tmp_path / "killed" / "run")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["static", "c10d"])
@pytest.mark.parametrize("moment", ["first-steps", "scoring"])
def test_two_machines_go_on_by_themselves(tmp_path: Path, undisturbed: Path, moment: str, kind: str) -> None:
    """As docs/scale.md shows. Under c10d only one launcher counts the restart: the other has lost no process."""
    port, each = free_port(), ["--nnodes=2", "--nproc-per-node=1"]
    where = {
        "static": [
            [f"--node-rank={rank}", "--master-addr=127.0.0.1", f"--master-port={port}"] for rank in (0, 1)
        ],
        "c10d": 2 * [["--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{port}"]],
    }
    arguments = training(tmp_path, "killed")
    machines = [start(f"{moment}:1", arguments, [*each, *own]) for own in where[kind]]
    try:
        for machine in machines:
            output, _ = machine.communicate(timeout=300)
            assert machine.returncode == 0, output
    finally:
        for machine in machines:
            machine.kill()
    same(undisturbed, tmp_path / "killed" / "run")
