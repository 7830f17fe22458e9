"""The commands that docstrings and the examples in helps show, as a reader would type them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
COMMAND = re.compile(r"(tracer|python|torchrun|accelerate|pip|make) [^:(]")
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def shown_commands(file: Path) -> list[str]:
    """Those that stand on a line of their own, with alternatives that a comment behind them names, in order."""
    return [command for text in _texts(file) for line in text.splitlines() for command in _commands(line)]


def _texts(file: Path) -> Iterator[str]:
    """Docstrings, and texts in capitals that are shown with a help."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node)):
            yield text
        match node:
            case ast.Assign([ast.Name(name)], ast.Constant(str(text))) if name.isupper():
                yield text


def _commands(line: str) -> Iterator[str]:
    command, *comments = re.split(r"\s+# | {2,}", line.strip())
    for words in (command, *(comment.removeprefix("or: ") for comment in comments if comment[:4] == "or: ")):
        if COMMAND.match(words):
            yield words
