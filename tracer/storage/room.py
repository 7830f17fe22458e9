"""Room on a disk: what is free where something will be written, and errors of one that is full."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

from tracer.core.errors import UserError

FULL = (errno.ENOSPC, errno.EDQUOT)  # no room, or a user's share of it is used up


class DiskFull(UserError):
    """There is no room for what would be written: no fault of the work, which goes on once there is."""


def free(path: Path) -> int | None:
    """Bytes that this user can write where `path` is or will be; None if the system does not say."""
    place = path.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    try:
        disk = os.statvfs(place)
    except OSError:
        return None
    return disk.f_bavail * disk.f_frsize or (None if disk.f_blocks == 0 else 0)


def size(path: Path) -> int:
    """Bytes of a file, or of all files in a folder; 0 if there is none. Several names of one file count once."""
    files = {}
    for each in (path, *path.rglob("*")) if path.exists() else ():
        with suppress(OSError):  # another process may have removed it
            stated = each.lstat()
            if stat.S_ISREG(stated.st_mode):
                files[stated.st_dev, stated.st_ino] = stated.st_size
    return sum(files.values())


def size_text(count: float) -> str:
    """A number of bytes: 1.8 GiB, 12 MiB, 3 KiB."""
    for unit, name in ((2**30, "GiB"), (2**20, "MiB")):
        if count >= unit:
            return f"{count / unit:.1f} {name}" if count < 10 * unit else f"{count / unit:.0f} {name}"
    return f"{max(1, round(count / 2**10))} KiB"


def require_room(path: Path, needed: float, what: str, less: str) -> None:
    """Raise DiskFull if `needed` bytes are not free where `path` is; `less` says what would need less."""
    room = free(path)
    if room is not None and needed > room:
        raise DiskFull(
            f"{what} needs {size_text(needed)} on the disk, and {size_text(room)} are free at {path}: {less}"
        )
