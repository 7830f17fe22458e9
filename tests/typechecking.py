"""The type checker that jaxtyping puts on every function of the pure core while tests run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from beartype import BeartypeConf, beartype
from jaxtyping import config

# An int is a float to people, to type checkers and to arithmetic.
_check = beartype(conf=BeartypeConf(is_pep484_tower=True))


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with checks; without any where they are switched off, as in commands that a test forks."""
    return function if config.jaxtyping_disable else _check(function)
