"""A recipe by name: a Python function that returns an experiment or a sweep."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from pathlib import Path
from types import FunctionType, ModuleType

from tracer.core.errors import UserError, unknown
from tracer.methods.base import arguments


def recipe(name: str) -> FunctionType:
    """The function that `MODULE:FUNCTION` or `FILE.py:FUNCTION` names, e.g. tracer.recipes.ablation:beta.

    Version 0.1 had the recipes in a package `recipes` of their own; that name is accepted until 0.3.
    """
    place, colon, function = name.rpartition(":")
    if place == "recipes" or place.startswith("recipes."):
        warnings.warn(
            f"{place} is now tracer.{place}; the old name goes in version 0.3", FutureWarning, stacklevel=2
        )
        place = f"tracer.{place}"
    if not colon:
        raise UserError(
            f"recipe {name!r} has no function: write MODULE:FUNCTION, e.g. tracer.recipes.ablation:beta"
        )
    module = _from_file(Path(place)) if place.endswith(".py") else _imported(place)
    there = recipes(module)
    if function not in there:
        raise unknown(f"recipe of {place}", function, there)
    return there[function]


def recipes(module: ModuleType) -> dict[str, FunctionType]:
    """The public functions of a module's own, by name."""
    return {
        key: value
        for key, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not key.startswith("_")
    }


def described(recipe: FunctionType) -> dict[str, str]:
    """What each flag means, by the recipe's docstring or else by that of its module, for flags that many share."""
    return arguments(recipe.__globals__.get("__doc__")) | arguments(recipe.__doc__)


def _imported(place: str) -> ModuleType:
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        raise UserError(
            f"cannot import {place!r}: {error}. A file is named with its path: mine.py:beta"
        ) from None


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UserError(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
