"""The same sweep as a SLURM array: one task a run, each of which goes on where it was stopped."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path


def array_script(name: str, count: int, jobs: int, folder: Path, command: Sequence[str]) -> str:
    """A script for sbatch; a task that is requeued resumes its run."""
    log = shlex.quote(str(folder / ".logs" / "%A_%a.log"))
    return f"""\
#!/bin/bash
#SBATCH --job-name={shlex.quote(name)}
#SBATCH --array=0-{count - 1}%{jobs}
#SBATCH --output={log}
#SBATCH --requeue
#SBATCH --gpus=1
#SBATCH --cpus-per-task=8
set -euo pipefail
srun {shlex.join(command)} --only "$SLURM_ARRAY_TASK_ID"
"""
