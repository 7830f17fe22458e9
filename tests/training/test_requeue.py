"""The SLURM script of docs/scale.md, with stand-ins for `srun` and `scontrol`: it is requeued until the run is done."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

from stopping import prepare, training

PAGE = Path(__file__).parents[2] / "docs" / "scale.md"

# Starts the command; the first time it sends USR1 to its process group once the run has logged a step.
SRUN = """#!{python}
import os, signal, subprocess, sys, time
from pathlib import Path
out, first = Path(os.environ["OUT"]), sys.argv[2] == "train"
arguments = {arguments} if first else sys.argv[2:]
child = subprocess.Popen([sys.executable, "-m", "tracer", *arguments], process_group=0)
while first and child.poll() is None and not (out / "log.jsonl").exists():
    time.sleep(0.02)
if first:
    os.killpg(child.pid, signal.SIGUSR1)
sys.exit(child.wait())
"""
SCONTROL = '#!/bin/bash\necho "$@" >> "$OUT.requeued"\n'


def test_a_requeued_job_goes_on_until_the_run_is_done(tmp_path: Path) -> None:
    (script,) = re.findall(r"```bash\n(#!/bin/bash\n#SBATCH.*?)```", PAGE.read_text(), re.DOTALL)
    prepare(tmp_path)
    tools, out = tmp_path / "bin", tmp_path / "run"
    tools.mkdir()
    arguments = [*training(tmp_path, "run", 2), "--steps", "40"]
    for name, text in (
        ("srun", SRUN.format(python=sys.executable, arguments=arguments)),
        ("scontrol", SCONTROL),
    ):
        (tools / name).write_text(text)
        (tools / name).chmod(stat.S_IRWXU)
    environment = {
        **os.environ,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "OUT": str(out),
        "SLURM_JOB_ID": "17",
        "OMP_NUM_THREADS": "1",
    }
    codes = []
    while len(codes) < 3 and (not codes or codes[-1] == 138):  # a scheduler
        done = subprocess.run(
            ["bash", "-c", script], env=environment, capture_output=True, text=True, check=False, timeout=200
        )
        codes.append(done.returncode)
    assert codes == [138, 0], done.stderr
    assert (tmp_path / "run.requeued").read_text() == "requeue 17\n"
    assert (out / "result.json").exists()
