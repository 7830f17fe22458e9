"""Errors that the user can fix, and helpers that word them."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

# What other libraries call a setting or a flag, with its name here.
ALIASES = {
    "batch_size": "batch",
    "bs": "batch",
    "learning_rate": "lr",
    "max_grad_norm": "clip",
    "max_steps": "steps",
    "num_epochs": "epochs",
    "num_train_epochs": "epochs",
    "num_workers": "workers",
    "output": "out",
    "output_dir": "out",
    "warmup_steps": "warmup",
    "wd": "decay",
    "weight_decay": "decay",
}


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
    return UserError(f"unknown {kind} {str(value)!r}: {suggestion(value, choices)}")


def suggestion(value: object, choices: Iterable[str]) -> str:
    """The valid choices nearest to a value; without any that is near, all of them, or the first of many."""
    names = sorted({str(choice) for choice in choices})
    if close := near(value, names):
        return f"did you mean {' or '.join(close)}?"
    if len(names) <= 24:
        return f"choose from: {', '.join(names) or '(nothing available)'}"
    return f"{len(names)} are known, for example {', '.join(names[:5])}"


def near(value: object, choices: Iterable[str]) -> list[str]:
    """Up to three choices that are spelt like the value, whatever their case, or the one that is its alias."""
    word, by_lowercase = str(value).lower(), {choice.lower(): choice for choice in choices}
    name = ALIASES.get(word.removeprefix("--").replace("-", "_"), "")
    alias = f"--{name}" if word.startswith("--") else name
    close = [alias] if alias in by_lowercase else get_close_matches(word, by_lowercase, n=3, cutoff=0.6)
    return [by_lowercase[each] for each in close]
