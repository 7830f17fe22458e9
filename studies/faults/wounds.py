"""Ways in which a process is hurt from inside: the n-th call of a function kills it, or fails."""

from __future__ import annotations

import builtins
import errno
import io
import os
import signal
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, NoReturn


def at_call(number: int, act: Callable[[], object], *names: str) -> None:
    """Act instead of the `number`-th call, and of all later ones, of these functions of `os`."""
    calls = count(1)

    def wounded(real: Callable[..., Any]) -> Callable[..., Any]:
        def function(*args: Any, **kwargs: Any) -> Any:
            if next(calls) >= number:
                act()
            return real(*args, **kwargs)

        return function

    for name in names:
        setattr(os, name, wounded(getattr(os, name)))


def behind_rename(name: str, act: Callable[[], object]) -> None:
    """Act as soon as something has been moved to the place of this name."""
    real = os.replace

    def replace(source: Any, target: Any, **kwargs: Any) -> None:
        real(source, target, **kwargs)
        if os.path.basename(target) == name:  # noqa: PTH119
            act()

    os.replace = replace


def die() -> NoReturn:
    """At once, without a word."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("dead")


def refuse(number: int) -> Callable[[], NoReturn]:
    """Fail as the system does: with an OSError of this number."""

    def act() -> NoReturn:
        raise OSError(number, os.strerror(number))

    return act


def refuse_writing(folder: Path, number: int) -> None:
    """Fail whenever something below the folder is opened for writing, made or moved, as for one without rights."""
    inside = f"{folder}{os.sep}"

    def guarded(real: Callable[..., Any], writes: Callable[..., bool]) -> Callable[..., Any]:
        def function(path: Any, *args: Any, **kwargs: Any) -> Any:
            if (
                isinstance(path, str | os.PathLike)
                and f"{path}{os.sep}".startswith(inside)
                and writes(*args, **kwargs)
            ):
                raise OSError(number, os.strerror(number), str(path))
            return real(path, *args, **kwargs)

        return function

    def always(*args: Any, **kwargs: Any) -> bool:
        return True

    def opens(mode: str = "r", *args: Any, **kwargs: Any) -> bool:
        return not set(mode).isdisjoint("wax+")

    io.open = builtins.open = guarded(io.open, opens)
    for name in ("mkdir", "replace", "unlink", "rmdir"):
        setattr(os, name, guarded(getattr(os, name), always))


FULL, READ_ONLY, DENIED, BROKEN = errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO
