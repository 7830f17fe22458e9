"""Where a result comes from: the command that made it, the day, the commit and the versions."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGES = ("tracer-clip", "torch", "open_clip_torch", "numpy")


def origin(command: str) -> dict[str, Any]:
    """The head of a file of results made here and now; without a working copy there is no commit to tell."""
    made = {"command": command, "date": datetime.now(UTC).date().isoformat()}
    known = {"commit": found} if (found := commit()) else {}
    return {**made, **known, "versions": versions()}


def versions() -> dict[str, str]:
    """What decides the numbers besides the settings."""
    return {name: version(name) for name in PACKAGES}


def commit() -> str | None:
    """The commit of the working copy this package lies in, if it lies in one."""
    here = Path(__file__).resolve().parent
    command = ["git", "-C", str(here), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
