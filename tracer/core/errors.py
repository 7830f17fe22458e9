"""Errors that the user can fix, and helpers that word them."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(Exception):
    """Invalid input from the user. The command line prints the message and exits with code 2."""

    def __init__(self, message: object = "") -> None:
        super().__init__(printable(str(message)))


def printable(text: str) -> str:
    """The text with control characters written out: a file name must not steer the terminal that shows it."""
    return "".join(each if each.isprintable() or each in "\n\t" else repr(each)[1:-1] for each in text)


class AlreadyReported(UserError):
    """The run failed on an error that another process reports; this process exits without a message."""


class NonFinite(UserError):
    """A loss, a weight or a score is NaN or infinite: the model has diverged."""


class NotAdaptable(UserError):
    """The model has no layers for an adapter."""


def os_error_message(error: OSError) -> str:
    """The operating system's message, with the file name where there is one."""
    message = error.strerror or str(error)
    return f"{error.filename}: {message}" if error.filename else message


def at_least(least: int, **flags: int | None) -> None:
    """Raise UserError, naming the flag, if a value is below `least`; None means the flag was not set."""
    for name, value in flags.items():
        if value is not None and value < least:
            raise UserError(f"--{name.replace('_', '-')} {value} is too small: give {least} or more")


def unknown(kind: str, value: object, choices: Iterable[str]) -> UserError:
    """An error that names the kind of thing, the value and the nearest valid choices."""
    names = sorted({str(choice) for choice in choices})
    by_lowercase = {name.lower(): name for name in names}
    close = get_close_matches(str(value).lower(), by_lowercase, n=3, cutoff=0.6)
    if close:
        hint = f"did you mean {' or '.join(by_lowercase[name] for name in close)}?"
    elif len(names) <= 24:
        hint = f"choose from: {', '.join(names) or '(nothing available)'}"
    else:
        hint = f"{len(names)} are known, for example {', '.join(names[:5])}"
    return UserError(f"unknown {kind} {str(value)!r}: {hint}")
