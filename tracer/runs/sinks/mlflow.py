"""Logging to MLflow; MLFLOW_TRACKING_URI, MLFLOW_EXPERIMENT_NAME and the like work as usual."""

from __future__ import annotations

import os
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from tracer.runs.sinks.sink import Line, flat_settings, scalars
from tracer.storage.atomic import write_text


class MLflow:
    """One MLflow run per run folder. A resumed run keeps its id and does not log a step twice."""

    def __init__(self, folder: Path, description: dict[str, Any]) -> None:
        self.folder, self.description = folder, description
        self.id_file = folder / "mlflow" / "id.txt"  # per folder: an experiment may be run in several

    def begin(self, last_step: int) -> None:
        # import_module, because type checkers confuse this file with the package of the same name.
        mlflow: Any = import_module("mlflow")
        self.entities = mlflow.entities
        self.client = mlflow.MlflowClient()  # not the global functions: several runs may log in one process
        resumed = self.id_file.exists()
        if not resumed:
            write_text(self.id_file, self._create_run())
        self.id = self.id_file.read_text()
        self.client.update_run(self.id, status="RUNNING")
        self.first_step = last_step + 1 if resumed else 0

    def _create_run(self) -> str:
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "tracer")
        existing = self.client.get_experiment_by_name(name)
        experiment = existing.experiment_id if existing else self.client.create_experiment(name)
        run = self.client.create_run(experiment, run_name=self.folder.name)
        settings = flat_settings(self.description).items()
        params = [self.entities.Param(name, str(value)[:6000]) for name, value in settings]
        self.client.log_batch(run.info.run_id, params=params)
        return run.info.run_id

    def write(self, line: Line) -> None:
        if line["step"] >= self.first_step:
            now = int(1000 * time.time())
            numbers = scalars(line).items()
            metrics = [self.entities.Metric(name, value, now, line["step"]) for name, value in numbers]
            self.client.log_batch(self.id, metrics=metrics)

    def end(self) -> None:
        self.client.set_terminated(self.id)
