"""The same sweep as a SLURM array: one task a run, each of which goes on where it was stopped."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path


def logs(folder: Path) -> Path:
    """Where the tasks' output goes. Slurm opens the files and makes no folder for them."""
    return folder / ".logs"


def array_script(name: str, count: int, jobs: int, folder: Path, command: Sequence[str]) -> str:
    """A script for sbatch; a task that is requeued resumes its run, one that failed before tries again."""
    place = logs(folder)
    log, line = shlex.quote(str(place / "%A_%a.log")), shlex.join(command)
    return f"""\
#!/bin/bash
#SBATCH --job-name={shlex.quote(name)}
#SBATCH --array=0-{count - 1}%{jobs}
#SBATCH --output={log}
#SBATCH --requeue
#SBATCH --gpus=1
#SBATCH --cpus-per-task=8
#
# Slurm makes no folder for the output. It was made where this script was written; before submitting elsewhere:
#   mkdir -p {shlex.quote(str(place))}
# Submitting again runs what failed or was stopped, and nothing that is done.
# When all tasks have ended, this writes the tables and the report:
#   {line}
set -euo pipefail
srun {line} --only "$SLURM_ARRAY_TASK_ID"
"""
