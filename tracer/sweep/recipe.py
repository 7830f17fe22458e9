"""Find a recipe by name: a Python function that returns experiments or a sweep."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from pathlib import Path
from types import FunctionType, ModuleType

from tracer.core.errors import UserError, unknown


def recipe(name: str) -> FunctionType:
    """The function `MODULE:FUNCTION` or `FILE.py:FUNCTION`, e.g. tracer.recipes.ablation:beta."""
    location, colon, function = name.rpartition(":")
    if not colon:
        raise UserError(
            f"recipe {name!r} has no function: write MODULE:FUNCTION, e.g. tracer.recipes.ablation:beta"
        )
    functions = recipes(_module(location))
    if function not in functions:
        raise unknown(f"recipe of {location}", function, functions)
    return functions[function]


def recipes(module: ModuleType) -> dict[str, FunctionType]:
    """The public functions that a module defines, by name."""
    return {
        key: value
        for key, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not key.startswith("_")
    }


def _module(location: str) -> ModuleType:
    path = Path(location)
    if not location.endswith(".py"):
        try:
            if not all(map(str.isidentifier, location.split("."))):
                raise ModuleNotFoundError("it is not the name of a module")
            return importlib.import_module(location)
        except ModuleNotFoundError as error:
            raise UserError(
                f"cannot import {location!r}: {error}. A file is given by its path: mine.py:beta"
            ) from None
    if not path.is_file():
        raise UserError(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
