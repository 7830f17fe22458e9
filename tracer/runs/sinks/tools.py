"""Tools that show curves of a run. Their packages are optional, and imported when a run begins to log to them."""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from tracer.core.markdown import markdown_table
from tracer.runs.files import FOREIGN
from tracer.storage.atomic import write_text
from tracer.storage.folders import remove_links

Line = dict[str, Any]  # a log line: {"step": …, "kind": …, …values}


class Sink:
    """One tool. Its methods are called from one thread. An exception ends it with one warning, and the run goes on."""

    tool: ClassVar[str]  # the name of its package
    first_step = 0  # lines before it are there already

    def __init__(self, run: Path, description: dict[str, Any]) -> None:
        self.run_name, self.description = run.name, description
        self.folder = run / FOREIGN / self.tool  # for all that is written on this machine

    def begin(self, last_step: int) -> None:
        """Start or resume: earlier processes logged up to step `last_step` (-1: none). Then `write` gets every line."""
        remove_links(self.folder)  # the run may be a stranger's
        self.folder.mkdir(parents=True, exist_ok=True)
        self.start(last_step)

    def start(self, last_step: int) -> None:
        """What `begin` does in this tool, once its folder is there."""
        raise NotImplementedError

    def write(self, line: Line) -> None:
        """Add one line, if it is new."""
        if line["step"] >= self.first_step:
            self.add(line["step"], scalars(line))

    def add(self, step: int, values: dict[str, float]) -> None:
        """Add the values of curves at a step."""
        raise NotImplementedError

    def end(self) -> None:
        """Flush and close."""
        raise NotImplementedError

    def stored_id(self, last_step: int, create: Callable[[], str]) -> str:
        """The tool's id of the run in this folder; a resumed run keeps it, and does not log a step twice."""
        file = self.folder / "id.txt"  # per folder: an experiment may be run in several
        if file.is_file():
            self.first_step = last_step + 1
        else:
            write_text(file, create())
        return file.read_text()

    def settings(self) -> dict[str, Any]:
        """The settings of the experiment and the options of its method, by name."""
        settings = dict(self.description["experiment"])
        return settings | settings.pop("options")


class TensorBoard(Sink):
    """Event files in the run's folder: `tensorboard --logdir runs`.

    A resumed run rewrites its one file from the log, so that no step appears twice.
    """

    tool = "tensorboard"

    def start(self, last_step: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        del last_step
        for old in self.folder.glob("events.out.tfevents.*"):
            old.unlink()
        # purge_step makes a running TensorBoard discard what it read from the old file.
        self.writer = SummaryWriter(self.folder, purge_step=0, flush_secs=30)
        rows = [(name, f"`{value}`") for name, value in self.settings().items()]
        self.writer.add_text("experiment", markdown_table(("setting", "value"), rows, align_right=False), 0)

    def add(self, step: int, values: dict[str, float]) -> None:
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)

    def end(self) -> None:
        self.writer.close()


class WeightsAndBiases(Sink):
    """W&B; WANDB_PROJECT, WANDB_ENTITY and WANDB_MODE=offline work as usual. One W&B run per run folder."""

    tool = "wandb"

    def start(self, last_step: int) -> None:
        wandb: Any = import_module("wandb")
        self.run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "tracer"),
            id=self.stored_id(last_step, lambda: f"{self.description['id']}-{secrets.token_hex(3)}"),
            name=self.run_name,
            dir=self.folder.parent,  # in which it takes a folder of its own name
            config=self.description["experiment"],
            resume="allow",
            settings=wandb.Settings(console="off", login_timeout=30),
        )
        # Online, the server gives the next step; offline it is 0 and the log decides.
        self.first_step = self.run.step or self.first_step

    def add(self, step: int, values: dict[str, float]) -> None:
        self.run.log(values, step=step)

    def end(self) -> None:
        self.run.finish()


class MLflow(Sink):
    """MLflow; MLFLOW_TRACKING_URI, MLFLOW_EXPERIMENT_NAME and the like work as usual. One run per run folder.

    Without an address the store is the folder of this sink: MLflow's own default is a database for which
    mlflow-skinny has no driver.
    """

    tool = "mlflow"

    def start(self, last_step: int) -> None:
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # else 3.17 refuses folders
        mlflow: Any = import_module("mlflow")
        self.entities = mlflow.entities
        address = None if mlflow.is_tracking_uri_set() else self.folder.absolute().as_uri()
        # Not the global functions: several runs may log in one process.
        self.client = mlflow.MlflowClient(address, address)
        self.id = self.stored_id(last_step, self._create_run)
        self.client.update_run(self.id, status="RUNNING")

    def _create_run(self) -> str:
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "tracer")
        existing = self.client.get_experiment_by_name(name)
        experiment = existing.experiment_id if existing else self.client.create_experiment(name)
        run = self.client.create_run(experiment, run_name=self.run_name)
        params = [self.entities.Param(name, str(value)[:6000]) for name, value in self.settings().items()]
        self.client.log_batch(run.info.run_id, params=params)
        return run.info.run_id

    def add(self, step: int, values: dict[str, float]) -> None:
        now = int(1000 * time.time())
        metrics = [
            self.entities.Metric(metric_name(name), value, now, step) for name, value in values.items()
        ]
        self.client.log_batch(self.id, metrics=metrics)

    def end(self) -> None:
        self.client.set_terminated(self.id)


def metric_name(name: str) -> str:
    """A name that MLflow takes: a retained set may be called by its path."""
    parts = (part if part.strip(".") else f"_{part}" for part in name.split("/"))
    return "/".join(re.sub(r"[^\w\-. :]", "_", part, flags=re.ASCII) for part in parts)


def scalars(line: Line) -> dict[str, float]:
    """The numbers of a line by the name of their curve: train/loss, held_out/accuracy."""
    values = {name: value for name, value in line.items() if name not in ("step", "kind")}
    return dict(_leaves(values, line["kind"]))


def _leaves(value: Any, path: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}/{name}")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, float(value)
