"""One of two processes is killed under `torchrun`: the other says so and stops, and the run can be resumed."""

from __future__ import annotations

import json
import os
import shlex
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file
from starting import own_frames
from torchrun import Launch, forked, ranks, running, started

from studies.faults.process import CommandProcess

MODEL = {
    "embed_dim": 8,
    "vision_cfg": {"image_size": 28, "layers": 1, "width": 16, "head_width": 8, "patch_size": 14},
    "text_cfg": {"context_length": 16, "vocab_size": 49408, "width": 4, "heads": 1, "layers": 1},
}


def command(folder: Path) -> list[str]:
    """Far more steps than are ever taken, with a checkpoint behind every other."""
    pixels = np.random.default_rng(0).integers(0, 256, (24, 28, 28, 3), np.uint8)
    np.savez(folder / "data.npz", images=pixels, labels=np.arange(24) % 3)
    (folder / "minute.json").write_text(json.dumps(MODEL))
    return [
        *("train", "flyp", "--data", str(folder / "data.npz"), "--held-out", str(folder / "data.npz")),
        *("--model", str(folder / "minute.json"), "--pretrained", "none", "--templates", "name"),
        *("--steps", "100000", "--batch", "8", "--save-every", "2", "--device", "cpu", "--workers", "0"),
        *("--out", str(folder / "run")),
    ]


def newest(run: Path) -> int:
    return max((int(place.name[5:]) for place in (run / "resume").glob("step-*")), default=0)


@pytest.mark.parametrize("launch", [forked, pytest.param(started, marks=pytest.mark.slow)])
def test_a_killed_rank_stops_the_other_and_the_run_goes_on(tmp_path: Path, launch: Launch) -> None:
    process = launch(command(tmp_path), ())
    run, deadline = tmp_path / "run", time.monotonic() + 120
    while newest(run) < 4 and running(process.child) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(ranks(process.child)[1], signal.SIGKILL)
    killed = time.monotonic()
    code, said, _ = process.wait()
    assert time.monotonic() - killed < 60
    assert code != 0
    assert newest(run) >= 4, said
    assert "is gone" in said, said
    assert f"tracer resume {shlex.quote(str(run))}" in said.replace("\n", ""), said
    assert not own_frames(said), said  # the launcher shows its own trace, we show none

    reached = newest(run)
    resume = ["resume", str(run), "--device", "cpu", "--workers", "0", "--save-every", "2"]
    alone = CommandProcess(resume)
    deadline = time.monotonic() + 120
    while newest(run) <= reached and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(alone.child, signal.SIGTERM)
    ended = alone.wait()
    assert ended.code == 128 + signal.SIGTERM, ended.output
    assert newest(run) > reached
    steps = [
        json.loads(line)["step"] for line in (run / "log.jsonl").read_text().splitlines() if '"train"' in line
    ]
    assert steps == sorted(set(steps)), "a step is told twice, or out of order"
    assert load_file(run / "resume" / f"step-{newest(run):09d}" / "student.safetensors")
