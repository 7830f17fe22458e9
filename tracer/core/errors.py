"""What goes wrong on the user's side, said so that it can be put right."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(Exception):
    """Something the user gave cannot be used. The command prints it and exits with code 2."""


class Echo(UserError):
    """Another process is refused, and has said why."""


def denied(error: OSError) -> str:
    """What the system has refused, and where."""
    told = error.strerror or str(error)
    return f"{error.filename}: {told}" if error.filename else told


def at_least(least: int, **flags: int | None) -> None:
    """Refuse, by the name of its flag, a number below the least that makes sense; None is a flag not given."""
    for name, value in flags.items():
        if value is not None and value < least:
            raise UserError(f"--{name.replace('_', '-')} {value} is too small: give {least} or more")


def unknown(kind: str, value: object, choices: Iterable[str]) -> UserError:
    """An error that names the thing, the value given and the nearest valid choices."""
    known = sorted({str(choice) for choice in choices})
    spelt = {name.lower(): name for name in known}
    named = [spelt[near] for near in get_close_matches(str(value).lower(), spelt, n=3, cutoff=0.6)]
    if named:
        hint = f"did you mean {' or '.join(named)}?"
    elif len(known) <= 24:
        hint = f"choose from: {', '.join(known) or '(nothing available)'}"
    else:
        hint = f"{len(known)} are known, for example {', '.join(known[:5])}"
    return UserError(f"unknown {kind} {str(value)!r}: {hint}")
