"""The command `tracer`: finds the subcommand, shows errors as sentences, and answers with an exit code."""

from __future__ import annotations

import ast
import os
import sys
from importlib import import_module
from importlib.resources import files
from pkgutil import iter_modules

from tracer import __version__, commands
from tracer.console import console, errors
from tracer.errors import Echo, UserError, denied, unknown

EXAMPLES = """\
  tracer check photos/                     what is in your data, and the command to train on it
  tracer train --data photos/              TRACER on CLIP ViT-B-16, defaults by the size of your data
  tracer train flyp --data pairs.csv --lr 3e-6 --dry-run
  tracer resume runs/1a2b3c                after a crash or Ctrl-C, bit for bit
  tracer eval runs/1a2b3c --data test/     accuracy and calibration, before and after
  tracer export runs/1a2b3c                a folder that open_clip loads in one line
  tracer demo                              all of it on embedded digits, in minutes"""


def main(arguments: list[str] | None = None) -> int:
    """Run a subcommand. 0: done; 2: something the user can put right; 128 + n: stopped by signal n.

    1 is the answer of a look that finds something missing (`tracer check`).
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        _overview()
        return 0
    if arguments[0] in ("-V", "--version"):
        console.print(f"tracer {__version__}")
        return 0
    try:
        name = arguments[0]
        if name not in _names():
            raise unknown("command", name, _names())
        return import_module(f"tracer.commands.{name}").main(arguments[1:])
    except Echo:
        return 2
    except (
        UserError,
        OSError,
    ) as error:  # OSError: a full disk, a read-only folder, an address that is silent
        told = denied(error) if isinstance(error, OSError) else str(error)
        errors.print(f"[bold red]{_speaker()}error:[/] {_plain(told)}", highlight=False, soft_wrap=True)
        return 2
    except KeyboardInterrupt:
        errors.print("stopped")
        return 130


def _speaker() -> str:
    """Which process speaks, unless it is the first or the only one."""
    rank = os.environ.get("RANK", "0")
    return "" if rank == "0" else f"process {rank}: "


def _names() -> list[str]:
    return [module.name for module in iter_modules(commands.__path__)]


def _overview() -> None:
    console.print("[bold]tracer[/]: finetune CLIP-style models without losing what they already know\n")
    for name in _names():
        source = files(commands).joinpath(f"{name}.py").read_text()
        told = (ast.get_docstring(ast.parse(source)) or "").splitlines()[
            0
        ]  # read, not imported: help is quick
        console.print(f"  [bold]{name:10}[/] {_plain(told)}", highlight=False, soft_wrap=True)
    console.print(
        f"\nExamples\n{EXAMPLES}\n\n`tracer COMMAND --help` explains a command.",
        highlight=False,
        markup=False,
    )


def _plain(text: str) -> str:
    """Text in which brackets are brackets."""
    return text.replace("[", r"\[")
