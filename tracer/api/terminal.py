"""Terminal output: tables, and progress as a bar on a terminal, as plain lines elsewhere."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import IO, TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from tracer.api.streams import LEFT, Stream, steady, training
from tracer.core.errors import UserError, printable

if TYPE_CHECKING:  # importing torch would make `tracer --help` slow
    from tracer.training.loop import Report


class _Printable(Console):
    """A console on which names of files and classes cannot steer the terminal: control characters are written out.

    That it cannot write is no error of what is computed, in a command or a user's own program.
    """

    @property
    def file(self) -> IO[str]:  # pyrefly: ignore[bad-override]
        """Where it writes: what sys.stdout or sys.stderr is now."""
        stream = super().file
        if isinstance(stream, Stream):
            return stream
        if self._steady is None or self._steady[0] is not stream:
            self._steady = stream, steady(stream)
        return self._steady[1]

    _steady: tuple[IO[str], IO[str]] | None = None

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*(printable(each) if isinstance(each, str) else each for each in objects), **options)


console = _Printable(soft_wrap=True)
errors = _Printable(stderr=True, soft_wrap=True)
LINE_INTERVAL = 10.0  # seconds between two lines of progress if there is no terminal


def show_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; columns of numbers are right-aligned."""
    rows = list(rows)
    table = Table(title=escape(printable(title)), title_justify="left", title_style="bold")
    for index, column in enumerate(columns):
        numbers = all(row[index][:1] in "0123456789-+−" for row in rows)
        side = "right" if numbers and index else "left"
        table.add_column(escape(printable(column)), justify=side, overflow="fold")
    for row in rows:
        table.add_row(*(escape(printable(cell)) for cell in row))
    console.print(table)


def say(message: str, *, to: Console = console) -> None:
    """Print a line of plain text, whose brackets and numbers are not styled.

    On a terminal it is broken between words; a line with a command to copy is not, nor is output to a file.
    """
    whole = not to.is_terminal or "tracer " in message
    to.print(message, highlight=False, markup=False, soft_wrap=whole)


def put(text: str) -> None:
    """Print text for a program, as it is: it is what was asked for, so that it is an error if it cannot be written."""
    before = getattr(console.file, "lost", None)
    console.out(printable(text), highlight=False)
    lost = getattr(console.file, "lost", None)
    if lost is not None and lost is not before and lost.errno not in LEFT:
        raise UserError(f"what was asked for could not be printed: {lost.strerror}")


def stop_at_once(error: Exception) -> None:
    """Print the error and exit at once, even if the main thread waits for a process that has ended."""
    errors.print(
        f"[bold red]error:[/] {escape(str(error))}: this process stops too. Go on with: tracer resume RUN"
    )
    os._exit(2)


def percent(value: float | None) -> str:
    """A share as a percentage; an empty string for None."""
    return "" if value is None else f"{100 * value:.1f} %"


@contextmanager
def counting(title: str, shown: bool = True) -> Iterator[Callable[[int, int], None]]:
    """Progress of counted work, on standard error: yields a function of (done, total)."""
    shown_at = time.monotonic()
    with Progress(console=errors, transient=True, disable=not (shown and errors.is_terminal)) as bar:
        task = bar.add_task(title, total=None)

        def count(done: int, total: int) -> None:
            nonlocal shown_at
            bar.update(task, completed=done, total=total)
            if shown and not errors.is_terminal and time.monotonic() - shown_at > LINE_INTERVAL:
                shown_at = time.monotonic()
                errors.print(f"{title}: {done} of {total}", highlight=False, markup=False)

        yield count


class Display(AbstractContextManager["Display"]):
    """Shows the reports of a run until its context ends: step, loss, held-out accuracy, teacher gap and time left."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.latest: dict[str, str] = {}
        self.shown = 0
        self.bar = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[state]}"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
            speed_estimate_period=600,  # seconds; a report may come once in a minute
        )
        self.task = self.bar.add_task(name, total=None, state="")
        self._training = ExitStack()

    def __enter__(self) -> Display:
        self._training.enter_context(training())
        return self

    def __exit__(self, *details: object) -> None:
        self.bar.stop()
        self._training.close()

    def show(self, report: Report) -> None:
        """Show a report; without a terminal, only evaluations and every tenth of training print a line."""
        self.bar.start()  # not earlier: work before the first report shows its own progress
        steps = max(1, report.steps)
        self._keep(report)
        state = "  ".join(self.latest[name] for name in ("loss", "held-out", "gap") if name in self.latest)
        if report.warning:
            errors.print(f"[bold red]warning:[/] {escape(report.warning)}", highlight=False)
        if report.message:
            console.print(f"{self.name}: {escape(report.message)}", highlight=False)
        self.bar.update(self.task, completed=report.step, total=report.steps, state=state)
        due = report.accuracy is not None or report.step - self.shown > steps / 10
        if not console.is_terminal and due and not report.message:
            self.shown = report.step
            left = self.bar.tasks[0].time_remaining
            line = f"{self.name} {report.step}/{steps} {state}" + (f"  {left:.0f} s left" if left else "")
            console.print(line.rstrip(), highlight=False, markup=False)
            self.latest.pop("held-out", None)  # a later line is of another step; the bar goes on showing it

    def _keep(self, report: Report) -> None:
        """Keep the values of a report as text; an accuracy with its step, since it is measured at few steps."""
        if report.loss is not None:
            self.latest["loss"] = f"loss {report.loss:z.3f}"
        if report.accuracy is not None:
            images = "" if report.images is None else f" of {report.images}"
            self.latest["held-out"] = f"held-out {report.accuracy:.1%}{images} at step {report.step}"
        if report.gap is not None:
            self.latest["gap"] = f"teacher gap {report.gap:z.4f}"  # z: rounding may leave −0.0000
