"""Provenance of a result: the command, the date, the commit and the package versions that produced it."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("tracer-clip", "torch", "open_clip_torch", "numpy", "pillow", "timm")
OPTIONAL = ("transformers", "tokenizers")


def origin(command: str) -> dict[str, Any]:
    """The header of a results file written today by `command`; "commit" is there only in a git working copy."""
    header: dict[str, Any] = {"command": command, "date": datetime.now(UTC).date().isoformat()}
    if revision := commit():
        header["commit"] = revision
    return {**header, "versions": versions()}


def versions() -> dict[str, str]:
    """Versions of the packages that can change the numbers: images are decoded and texts divided by some of them."""
    present = {name: _version(name) for name in PACKAGES}
    for name in OPTIONAL:
        with suppress(PackageNotFoundError):
            present[name] = _version(name)
    return present


_version = cache(version)  # it parses a file at each call


@cache  # the code that this process has loaded stays that of its start
def commit() -> str | None:
    """The git commit of the working copy that contains this package, or None outside one."""
    package = Path(__file__).resolve().parent
    command = ["git", "-C", str(package), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
