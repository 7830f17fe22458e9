"""The user's cache folder: what is in it can be computed again."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from tracer.storage.atomic import write_text


def cache_folder() -> Path:
    """TRACER_CACHE, else `tracer` in the user's cache folder."""
    own = os.environ.get("TRACER_CACHE")
    return Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tracer"


def write_listing(kind: str, about: str, lines: Iterable[str]) -> str:
    """Write a list that is too long for a message, and say where; empty if the folder cannot be written."""
    digest = hashlib.blake2b(about.encode(errors="replace"), digest_size=4).hexdigest()
    path = cache_folder() / f"{kind}-{digest}.txt"
    with suppress(OSError):
        write_text(path, "".join(f"{line}\n" for line in lines).encode(errors="replace").decode())
        return f"all are listed in {path}"
    return ""
