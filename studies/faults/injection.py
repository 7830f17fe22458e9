"""Faults injected into the running process: the n-th call of a system function kills it, or fails."""

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


def on_call(number: int, act: Callable[[], object], *names: str) -> None:
    """Call `act` before the `number`-th and every later call of these functions of `os`, counted together.

    Calls of other processes that are forked from this one, such as workers of the data loader, are left alone.
    """
    calls, process = count(1), os.getpid()

    def wrapped(original: Callable[..., Any]) -> Callable[..., Any]:
        def function(*args: Any, **kwargs: Any) -> Any:
            if os.getpid() == process and next(calls) >= number:
                act()
            return original(*args, **kwargs)

        return function

    for name in names:
        setattr(os, name, wrapped(getattr(os, name)))


def after_rename(name: str, act: Callable[[], object]) -> None:
    """Call `act` as soon as something has been renamed to a path that ends in `name`."""
    original = os.replace

    def replace(source: Any, target: Any, **kwargs: Any) -> None:
        original(source, target, **kwargs)
        if os.path.basename(target) == name:  # noqa: PTH119
            act()

    os.replace = replace  # pyrefly: ignore


def kill_self() -> NoReturn:
    """End this process by SIGKILL."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("dead")


def os_error(number: int) -> Callable[[], NoReturn]:
    """A function that raises the OSError of this number."""

    def act() -> NoReturn:
        raise OSError(number, os.strerror(number))

    return act


def fail_writes(folder: Path, number: int) -> None:
    """Raise the OSError of this number whenever something below the folder is opened for writing, made or moved."""
    inside = f"{folder}{os.sep}"

    def guarded(original: Callable[..., Any], writes: Callable[..., bool]) -> Callable[..., Any]:
        def function(path: Any, *args: Any, **kwargs: Any) -> Any:
            if (
                isinstance(path, str | os.PathLike)
                and f"{path}{os.sep}".startswith(inside)
                and writes(*args, **kwargs)
            ):
                raise OSError(number, os.strerror(number), str(path))
            return original(path, *args, **kwargs)

        return function

    def always(*args: Any, **kwargs: Any) -> bool:
        return True

    def for_writing(mode: str = "r", *args: Any, **kwargs: Any) -> bool:
        return not set(mode).isdisjoint("wax+")

    io.open = builtins.open = guarded(io.open, for_writing)
    for name in ("mkdir", "replace", "unlink", "rmdir"):
        setattr(os, name, guarded(getattr(os, name), always))


FULL, READ_ONLY, DENIED, BROKEN = errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO
