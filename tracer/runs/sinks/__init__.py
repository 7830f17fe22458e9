"""Who else is told how a run goes, as it goes: `--log tensorboard`, `--log wandb`. The log stays the truth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Literal

from tracer.core.errors import UserError, unknown
from tracer.runs.run import Run
from tracer.runs.sinks.mirror import Mirror
from tracer.runs.sinks.sink import Sink

Name = Literal["tensorboard", "wandb"]
SINKS: dict[str, str] = {"tensorboard": "TensorBoard", "wandb": "WeightsAndBiases"}  # module and class in it


def check_installed(names: Sequence[str]) -> None:
    """Refuse a sink that is unknown or not installed, before anything is done."""
    for name in names:
        if name not in SINKS:
            raise unknown("sink", name, SINKS)
        if find_spec(name) is None:
            raise UserError(
                f"--log {name} needs the package {name}: pip install {name} (or 'tracer-clip[sinks]')"
            )


def sink(name: str, run: Run) -> Sink:
    """A sink by name, for one run."""
    return getattr(import_module(f"tracer.runs.sinks.{name}"), SINKS[name])(run.folder, run.description)


@contextmanager
def mirrored(run: Run, names: Sequence[str], complain: Callable[[str], None]) -> Iterator[None]:
    """Inside of it, whatever the run records is told to these sinks too; at its end they have heard all."""
    if not names:
        yield
        return
    mirror = Mirror(run.recorder.path, {name: sink(name, run) for name in names}, complain)
    plain, run.recorder = run.recorder, mirror
    try:
        yield
    finally:
        mirror.close(run.folder / "result.json")
        run.recorder = plain
