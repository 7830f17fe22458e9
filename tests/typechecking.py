"""The type checker that jaxtyping puts on every function of the pure core while tests run."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

import jaxtyping
from beartype import BeartypeConf, beartype
from jaxtyping import config

CALLS = 100  # of one function in one test that are checked; an integral calls its integrand a million times

# An int is a float to people, to type checkers and to arithmetic.
_check = beartype(conf=BeartypeConf(is_pep484_tower=True))
_jaxtyped = jaxtyping.jaxtyped
_tests = 0


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with checks; without any where they are switched off, as in commands that a test forks."""
    return function if config.jaxtyping_disable else _check(function)


def next_test() -> None:
    """From here on, the first calls of every function are checked again."""
    global _tests
    _tests += 1


def jaxtyped(*, typechecker: Any) -> Callable[[Any], Any]:
    """In the place of `jaxtyping.jaxtyped`: checks the first calls of a function in each test."""

    def decorate(target: Any) -> Any:
        checks, test, calls = _jaxtyped(typechecker=typechecker)(target), -1, 0
        if not inspect.isfunction(target):  # a class, a property
            return checks

        @wraps(target)
        def call(*arguments: Any, **named: Any) -> Any:
            nonlocal test, calls
            if test != _tests:
                test, calls = _tests, 0
            calls += 1
            return (target if calls > CALLS else checks)(*arguments, **named)

        return call

    return decorate


jaxtyping.jaxtyped = jaxtyped  # which the import hook names
