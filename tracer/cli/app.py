"""The command `tracer`: runs a subcommand, prints errors as sentences, returns an exit code."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import FrameType

from rich.markup import escape

import tracer
from tracer.api.streams import steady_streams
from tracer.api.terminal import console, errors, say
from tracer.cli import commands
from tracer.core.errors import AlreadyReported, UserError, os_error_message, unknown

EXAMPLES = """\
  tracer check photos/                  what is in your data
  tracer fit --data photos/             the best model found in half an hour
  tracer train --data photos/           TRACER on CLIP ViT-B-16, with defaults
  tracer train flyp --data pairs.csv --lr 3e-6 --dry-run
  tracer resume runs/1a2b3c             after a crash or Ctrl-C, bit for bit
  tracer eval runs/1a2b3c --data test/  accuracy before and after
  tracer export runs/1a2b3c             a folder that open_clip loads
  tracer predict runs/1a2b3c new/       the classes of new images, as a table
  tracer demo                           a complete example, in minutes"""

# Commands of the repository that are not part of the installed package, by the folder in `studies` that has them.
STUDIES = {"bench": "bench", "evidence": "emojishift", "theory": "theory", "toy": "toy"}
REPOSITORY = Path(tracer.__file__).parents[1]

# Commands that the processes of a launcher carry out together; others would do everything several times.
TOGETHER = ("eval", "resume", "train")

SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGINT)


def main(arguments: list[str] | None = None) -> int:
    """Run a subcommand. Returns 0: done; 2: an error that the user can correct; 128 + n: stopped by signal n.

    `tracer check` returns 1 if data are missing, `tracer sweep` if runs failed or are not finished. The code speaks of
    the work: that nobody reads what is printed, or that it cannot be written, changes nothing.
    """
    with steady_streams():
        code = _run(sys.argv[1:] if arguments is None else arguments)
    if arguments is None and (sinks := sys.modules.get("tracer.runs.sinks.forwarding")) and sinks.hanging():
        with suppress(OSError, ValueError):  # nobody may read any more
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    return code


def _run(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        _overview()
        return 0
    if arguments[0] in ("-V", "--version"):
        console.print(f"tracer {tracer.__version__}")
        return 0
    stopped: list[Stopped] = []
    try:
        with _signals_raise(stopped):
            module = _module(arguments[0])
            if arguments[0] not in TOGETHER and os.environ.get("WORLD_SIZE", "1") != "1":
                from tracer.parallel import require_one_process  # late: it imports torch

                require_one_process(f"`tracer {arguments[0]}`")
            return import_module(module).main(arguments[1:])
    except KeyboardInterrupt as stop:
        return _end(stop)
    except (UserError, OSError, TypeError, ValueError, RuntimeError) as error:
        if stopped:  # compiled code has taken the signal's exception for its own: "the file is not readable"
            return _end(stopped[0])
        if isinstance(error, AlreadyReported):
            return 2
        if not isinstance(error, UserError | OSError):
            raise
        # An OSError is a full disk, a read-only folder or an unreachable host: no traceback is needed.
        message = os_error_message(error) if isinstance(error, OSError) else str(error)
        rank = os.environ.get("RANK", "0")
        process = "" if rank == "0" else f"process {rank}: "
        errors.print(f"[bold red]{process}error:[/] {escape(message)}", highlight=False, soft_wrap=True)
        return 2


def _end(stop: KeyboardInterrupt) -> int:
    """Say that a signal has stopped the command. Returns the exit code."""
    say("stopped: the same command starts again", to=errors)
    return 128 + (stop.signal_number if isinstance(stop, Stopped) else signal.SIGINT)


class Stopped(KeyboardInterrupt):
    """A signal has stopped the command."""

    def __init__(self, signal_number: int = signal.SIGINT) -> None:
        super().__init__()
        self.signal_number = signal_number


@contextmanager
def _signals_raise(stopped: list[Stopped]) -> Iterator[None]:
    """A context in which signals that would end the process at once stop it as Ctrl-C does, and are noted.

    Then temporary files are removed and the workers of a sweep save their runs. A run that trains has handlers of its
    own; signals that are ignored, as under nohup, stay ignored.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        del frame
        stopped.append(Stopped(number))
        raise stopped[-1]

    defaults = (signal.SIG_DFL, signal.default_int_handler)
    handlers = {each: signal.getsignal(each) for each in SIGNALS if signal.getsignal(each) in defaults}
    if threading.current_thread() is not threading.main_thread():
        handlers = {}
    try:
        for number in handlers:
            signal.signal(number, stop)
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _module(command: str) -> str:
    """The module whose `main` runs this command."""
    if command in STUDIES:
        folder = REPOSITORY / "studies" / STUDIES[command]
        if not folder.is_dir():
            raise UserError(
                f"`tracer {command}` is a study and not part of the installed package: clone the repository, "
                f"run `make demo` there once, then `.venv/bin/tracer {command}`"
            )
        if str(REPOSITORY) not in sys.path:
            sys.path.append(str(REPOSITORY))
        return f"studies.{STUDIES[command]}.command"
    if command not in _names():
        raise unknown("command", command, [*_names(), *STUDIES])
    return f"tracer.cli.commands.{command}"


def _names() -> list[str]:
    return [module.name for module in iter_modules(commands.__path__)]


def _overview() -> None:
    console.print("[bold]tracer[/]: finetune CLIP-style models without losing what they already know\n")
    _list({name: Path(commands.__path__[0]) / f"{name}.py" for name in _names()})
    studies = {name: REPOSITORY / "studies" / folder / "command.py" for name, folder in STUDIES.items()}
    if any(file.is_file() for file in studies.values()):
        console.print("\nStudies (in a clone of the repository only)")
        _list(studies)
    say(f"\nExamples\n{EXAMPLES}\n\n`tracer COMMAND --help` explains a command.")


def _list(files: dict[str, Path]) -> None:
    """Print each command with the first line of its docstring. Files are read, not imported, which is faster."""
    for name, file in files.items():
        summary = file.read_text(encoding="utf-8").partition("\n")[0].strip('"')
        console.print(f"  [bold]{name:10}[/] {escape(summary)}", highlight=False, soft_wrap=True)
