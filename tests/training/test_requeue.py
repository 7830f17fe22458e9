"""The SLURM script of docs/scale.md, with stand-ins for `srun` and `scontrol`: it is requeued until the run is done."""

from __future__ import annotations

import os
import re
import shlex
import signal
import stat
import subprocess
from pathlib import Path

from stopping import Child, prepare, training, wait_until

PAGE = Path(__file__).parents[2] / "docs" / "scale.md"

# Asks the test to start the command, and ends as that does.
SRUN = """#!/bin/bash
printf '%q ' "$@" > "$OUT.new" && mv "$OUT.new" "$OUT.asked"
until [ -s "$OUT.ended" ]; do sleep 0.05; done
exit "$(cat "$OUT.ended")"
"""
SCONTROL = '#!/bin/bash\necho "$@" >> "$OUT.requeued"\n'


def test_a_requeued_job_goes_on_until_the_run_is_done(tmp_path: Path) -> None:
    """The first process group that `srun` starts is sent USR1 once the run has logged a step."""
    (script,) = re.findall(r"```bash\n(#!/bin/bash\n#SBATCH.*?)```", PAGE.read_text(), re.DOTALL)
    prepare(tmp_path)
    tools, out = tmp_path / "bin", tmp_path / "run"
    tools.mkdir()
    for name, text in (("srun", SRUN), ("scontrol", SCONTROL)):
        (tools / name).write_text(text)
        (tools / name).chmod(stat.S_IRWXU)
    request, ended = tmp_path / "run.asked", tmp_path / "run.ended"
    environment = {
        **os.environ,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "OUT": str(out),
        "SLURM_JOB_ID": "17",
    }
    codes: list[int] = []
    while len(codes) < 3 and (not codes or codes[-1] == 138):  # a scheduler
        with subprocess.Popen(
            ["bash", "-c", script], env=environment, stderr=subprocess.PIPE, text=True
        ) as job:
            wait_until(request.exists)
            tracer, command, *rest = shlex.split(request.read_text())
            request.unlink()
            assert (tracer, command) == ("tracer", "resume" if codes else "train")
            child = Child(
                out, [command, *rest] if codes else [*training(tmp_path, "run", 2), "--steps", "40"]
            )
            if not codes:
                wait_until((out / "log.jsonl").exists)
                os.killpg(child.pid, signal.SIGUSR1)
            ended.write_text(str(child.process.wait().code))
            _, errors = job.communicate(timeout=60)
            ended.unlink()
        codes.append(job.returncode)
    assert codes == [138, 0], errors
    assert (tmp_path / "run.requeued").read_text() == "requeue 17\n"
    assert (out / "result.json").exists()
