"""Live logging to other tools: `--log tensorboard wandb mlflow`. The run's own log.jsonl is written in any case."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Literal

from tracer.core.errors import UserError, unknown
from tracer.runs.run import Run
from tracer.runs.sinks.forwarding import ForwardingRecorder
from tracer.runs.sinks.tools import MLflow, Sink, TensorBoard, WeightsAndBiases

Name = Literal["tensorboard", "wandb", "mlflow"]
# By the name of the package that each needs.
SINKS: dict[str, type[Sink]] = {sink.tool: sink for sink in (TensorBoard, WeightsAndBiases, MLflow)}


def check_installed(names: Sequence[str]) -> None:
    """Raise if a sink is unknown or its package is not installed."""
    for name in names:
        if name not in SINKS:
            raise unknown("sink", name, SINKS)
        if find_spec(name) is None:
            raise UserError(
                f"--log {name} needs the package {name}: pip install {name} (or 'tracer-clip[sinks]')"
            )


@contextmanager
def forward_to_sinks(run: Run, names: Sequence[str], warn: Callable[[str], object]) -> Iterator[None]:
    """A context in which the run's log lines also go to these sinks, and its result at the end."""
    if not names:
        yield
        return
    sinks = {name: SINKS[name](run.folder, run.description) for name in names}
    recorder = ForwardingRecorder(run.recorder.path, sinks, warn)
    previous, run.recorder = run.recorder, recorder
    try:
        yield
    finally:
        recorder.close(run.folder / "result.json")
        run.recorder = previous
