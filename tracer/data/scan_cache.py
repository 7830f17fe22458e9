"""What scans have found in image files, kept in the user's cache folder so that no file is decoded twice.

An entry holds for a file with the same path, size, inode and times. Losing the cache costs time and nothing else.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tracer.data.formats.arrays import UNREADABLE
from tracer.data.hashing import SIZE
from tracer.storage.atomic import write_bytes

LIMIT = 20_000_000  # entries of one cache; if there are more, those of earlier scans are forgotten
SECOND = 1_000_000_000  # in nanoseconds
TICK = SECOND // 20  # a file may change twice within it and keep its times


class Finding(NamedTuple):
    """A hash of an image's content, and why it cannot be decoded; empty if it can."""

    content: bytes
    problem: str = ""


def cache_folder() -> Path:
    """The folder for what can be computed again: TRACER_CACHE, else `tracer` in the user's cache folder."""
    own = os.environ.get("TRACER_CACHE")
    return Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tracer"


class ScanCache:
    """Findings for the files below one folder, by the signature of the file."""

    def __init__(self, folder: str) -> None:
        name = hashlib.blake2b(os.fsencode(folder), digest_size=SIZE).hexdigest()
        self.path = cache_folder() / "scans" / f"{name}.npz"
        self._findings = self._read()

    def get(self, signature: bytes | None) -> Finding | None:
        """What an earlier scan found in this file."""
        return None if signature is None else self._findings.get(signature)

    def add(self, findings: Iterable[tuple[bytes | None, Finding]]) -> None:
        """Keep new findings on disk, if the folder can be written."""
        new = {signature: finding for signature, finding in findings if signature is not None}
        if not new:
            return
        both = self._findings | new
        self._findings = both if len(both) <= LIMIT else new
        with suppress(OSError):
            write_bytes(self.path, self._encoded())

    def _encoded(self) -> bytes:
        """The readable files first, then the others with their problems."""
        items = sorted(self._findings.items(), key=lambda item: bool(item[1].problem))
        buffer = BytesIO()
        np.savez(
            buffer,
            signatures=_matrix(signature for signature, _ in items),
            contents=_matrix(finding.content for _, finding in items),
            problems=np.array([finding.problem for _, finding in items if finding.problem], np.str_),
        )
        return buffer.getvalue()

    def _read(self) -> dict[bytes, Finding]:
        try:
            with self.path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
                signatures, contents, problems = (
                    archive[name] for name in ("signatures", "contents", "problems")
                )
            if not signatures.shape == contents.shape == (len(contents), SIZE):
                return {}
            texts = [""] * (len(signatures) - len(problems)) + list(map(str, problems))
            rows = zip(_rows(signatures), _rows(contents), texts, strict=True)
            return {signature: Finding(content, problem) for signature, content, problem in rows}
        except UNREADABLE:
            return {}


def signature(file: Path, part: str) -> bytes | None:
    """A hash of path, size, inode and times of a file; None if it is missing, or so new that it may change unseen."""
    try:
        status = file.stat()
    except (OSError, ValueError):
        return None
    latest = max(status.st_mtime_ns, status.st_ctime_ns)
    coarse = latest % SECOND == 0  # some file systems round times to one or two seconds
    if time.time_ns() - latest < (2 * SECOND if coarse else TICK):
        return None
    identity = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev)
    return hashlib.blake2b(os.fsencode(file) + repr((part, identity)).encode(), digest_size=SIZE).digest()


def _matrix(hashes: Iterable[bytes]) -> np.ndarray:
    return np.frombuffer(b"".join(hashes), np.uint8).reshape(-1, SIZE)


def _rows(matrix: np.ndarray) -> list[bytes]:
    joined = matrix.astype(np.uint8).tobytes()
    return [joined[start : start + SIZE] for start in range(0, len(joined), SIZE)]
