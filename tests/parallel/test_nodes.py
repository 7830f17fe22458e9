"""Two machines, as far as one machine can play them: two `torchrun` nodes that meet on loopback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from closeness import bound, length
from pair import compared

from studies.faults.process import free_port
from tracer.models.student import load

NODE = str(Path(__file__).with_name("node.py"))
NODES, EACH = 2, 2  # machines, and processes on each of them


def training(folder: Path, name: str) -> list[str]:
    return [
        *(NODE, str(folder), "train", "--data", "digits", "--model", "tiny-28", "--pretrained", "none"),
        *("--templates", "name", "--steps", "4", "--batch", "16", "--lr", "1e-3", "--clip", "0.5"),
        *("--device", "cpu", "--precision", "fp32", "--workers", "0", "--out", str(folder / name)),
    ]


def launched(rank: int, port: int) -> list[str]:
    where = ["--master-addr=127.0.0.1", f"--master-port={port}"]
    node = [f"--nnodes={NODES}", f"--node-rank={rank}", f"--nproc-per-node={EACH}"]
    return [sys.executable, "-m", "torch.distributed.run", *node, *where]


@pytest.mark.slow  # seven starts of Python, a minute and a half of one core
def test_two_machines_train_what_one_process_does(tmp_path: Path) -> None:
    """The whole model is cut on each machine, and the machines average their gradients."""
    port = free_port()
    many = [[*launched(rank, port), *training(tmp_path, "many"), "--shard"] for rank in range(NODES)]
    commands = [[sys.executable, *training(tmp_path, "one")], *many]
    path = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(path)}
    running = [
        subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        for command in commands
    ]
    try:
        for process in running:
            said, _ = process.communicate(timeout=240)
            assert process.returncode == 0, said
    finally:
        for process in running:
            process.kill()
    meshes = [(tmp_path / f"{rank}.mesh").read_text() for rank in range(NODES * EACH)]
    assert meshes == [repr((NODES, EACH))] * NODES * EACH
    found = compared(tmp_path / "one", tmp_path / "many")
    assert found.pop("accuracy") == 0
    sums = length(load("tiny-28"))
    assert found.pop("weight_gap") < bound(sums, dtype=torch.float32)  # measured in fp32
    assert found.keys() >= {"loss", "first loss", "scale", "student", "teacher", "result"}
    assert max(found.values()) < bound(sums, size=10), found
