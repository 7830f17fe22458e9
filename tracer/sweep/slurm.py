"""A sweep as a SLURM array job: one task per run; requeued tasks resume their run."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from tracer.core.errors import UserError


def logs(folder: Path) -> Path:
    """The folder of the tasks' output; it must exist, because Slurm does not create it."""
    return folder / ".logs"


def array_script(name: str, count: int, jobs: int, folder: Path, command: Sequence[str]) -> str:
    """A script for sbatch; a requeued task resumes its run, and a failed run is tried again."""
    for text in (name, str(folder), *command):
        if any(character in text for character in "\n\r\0"):
            raise UserError(f"{text!r} cannot stand in a script: it holds a line break")
    log_folder = logs(folder)
    log, line = shlex.quote(str(log_folder / "%A_%a.log")), shlex.join(command)
    return f"""\
#!/bin/bash
#SBATCH --job-name={shlex.quote(name)}
#SBATCH --array=0-{count - 1}%{jobs}
#SBATCH --output={log}
#SBATCH --requeue
#SBATCH --gpus=1
#SBATCH --cpus-per-task=8
#
# Slurm does not create the folder of the output. On a machine where it does not exist, first run:
#   mkdir -p {shlex.quote(str(log_folder))}
# Submit again to run what failed or was stopped; finished runs are skipped.
# When all tasks have ended, this writes the tables and the report:
#   {line}
set -euo pipefail
srun {line} --only "$SLURM_ARRAY_TASK_ID"
"""
