"""A small disk in memory, where the system permits mounting one."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Disk:
    """A tmpfs that can be resized or made read-only while it is in use."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def resize(self, kilobytes: int) -> None:
        """Change the size, as if somebody had made room."""
        self._remount(f"size={kilobytes}k")

    def read_only(self) -> None:
        """Remount read-only, as a disk with errors is: not even root may write."""
        self._remount("ro")

    def _remount(self, option: str) -> None:
        _call("mount", "-o", f"remount,{option}", str(self.place))


@contextmanager
def disk(place: Path, kilobytes: int = 1 << 16) -> Iterator[Disk | None]:
    """A disk of this size mounted at `place`; None where mounting is not permitted."""
    place.mkdir(parents=True, exist_ok=True)
    if not _call("mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(place)):
        yield None
        return
    try:
        yield Disk(place)
    finally:
        _call("umount", "-l", str(place))


def _call(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False
