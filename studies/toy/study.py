"""Run the experiment: one pretraining for each seed, one run directory for each variant, one row for each run."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from studies.toy.frontier import Row, forgetting
from studies.toy.strategies import Variant
from studies.toy.teaching import Curves, curves, teachers
from tracer.cli.training import run_with_progress
from tracer.methods.base import method
from tracer.models.export import export
from tracer.runs.experiment import Experiment
from tracer.runs.run import Run

Task = Literal["colour", "group", "digit"]


@dataclass(frozen=True)
class Scale:
    """Steps and batch sizes of pretraining, finetuning and the runs that record a teacher."""

    pretraining: int = 240
    pretraining_batch: int = 128
    steps: int = 60
    batch: int = 64
    teaching: int = 500  # steps of the runs that record a teacher: long, so that it can move rarely
    teaching_batch: int = 32

    @classmethod
    def full(cls) -> Scale:
        """As in the paper: ten epochs of all of MNIST."""
        epochs = 10 * 60_000 // 128
        return cls(pretraining=epochs, steps=epochs, batch=128, teaching=epochs, teaching_batch=128)


@dataclass(frozen=True)
class Setting:
    """The folder of the runs, the task, the data and the scale."""

    out: Path
    task: Task = "colour"
    scale: Scale = Scale()
    mnist: Path | None = None  # a folder with all of MNIST; by default the embedded digits

    def data(self, kind: str = "") -> str:
        """The name of a data set: grey digits, or a kind of painted ones."""
        name = f"digits:{kind}" if kind else "digits"
        return name if self.mnist is None else f"{name}@{self.mnist}"

    @property
    def painted(self) -> str:
        """The kind of painted digits to learn from; with the task "digit" they are called by their digit."""
        return "coloured" if self.task == "digit" else self.task

    @property
    def retained(self) -> dict[str, str]:
        """The data sets to retain, by the name of their measure."""
        kinds = {"original": "", "coloured": "coloured", "flipped": "flipped"}
        return {measure: self.data(kind) for measure, kind in kinds.items()}


def study(setting: Setting, variants: Iterable[Variant], seeds: Iterable[int]) -> Iterator[Row]:
    """Run every variant for every seed; finished runs are read."""
    variants = list(variants)
    for seed in seeds:
        model = pretrained(setting, seed)
        for index, variant in enumerate(variants):
            run = finetuned(setting, variant, model, seed)
            result = run.result
            if index == 0:
                yield _row(setting, "pretrained", None, seed, result, "before")
            yield _row(setting, variant.strategy, variant.strength, seed, result, "after")


def teacher_curves(setting: Setting, seed: int) -> Iterator[tuple[str, Curves]]:
    """Run every teacher under TRACER's loss; yields its title and curves."""
    scale, model = setting.scale, pretrained(setting, seed)
    for title, name, chosen, options in teachers(scale.teaching):
        experiment = replace(
            _finetuning(setting, model, seed, chosen, {**options, "tune": "image"}),
            steps=scale.teaching,
            batch=scale.teaching_batch,
            warmup=0.02,  # as in the released runs
        )
        folder = model.with_name(setting.task) / "teaching" / name
        yield title, curves(_finished(experiment, folder, evaluations=10))


def pretrained(setting: Setting, seed: int) -> Path:
    """The folder of a model pretrained on grey digits."""
    folder = setting.out / f"seed-{seed}" / "pretrained"
    experiment = Experiment(
        method="flyp",
        data=setting.data(),
        held_out=setting.data(),
        model="tiny-28",
        pretrained="none",
        steps=setting.scale.pretraining,
        batch=setting.scale.pretraining_batch,
        lr=1e-3,
        augment="none",
        seed=seed,
    )
    run = _finished(experiment, folder.with_name("pretraining"))
    if not folder.exists():
        export(run.student(), folder)
    return folder


def finetuned(setting: Setting, variant: Variant, model: Path, seed: int) -> Run:
    """The finished run of a variant."""
    experiment = _finetuning(setting, model, seed, variant.method, dict(variant.options))
    return _finished(experiment, model.with_name(setting.task) / variant.name)


def _finetuning(setting: Setting, model: Path, seed: int, method: str, options: dict[str, Any]) -> Experiment:
    """A finetuning experiment, without weight decay: it would pull every strategy to zero, and the paper has none."""
    return Experiment(
        method=method,
        options=options,
        data=setting.data(setting.painted),
        held_out=setting.data(setting.painted),
        retain=tuple(setting.retained.values()),
        model=str(model),
        steps=setting.scale.steps,
        batch=setting.scale.batch,
        lr=5e-4,
        decay=0.0,
        augment="none",
        seed=seed,
    )


def _finished(experiment: Experiment, folder: Path, evaluations: int = 1) -> Run:
    """Train or finish a run; its checkpoints are removed."""
    steps = experiment.steps or 1
    pace = {"save_every": max(60, steps // 20), "evaluate_every": max(1, steps // evaluations)}
    run = run_with_progress(
        experiment, folder, f"{method(experiment.method).title}, seed {experiment.seed}", **pace
    )
    shutil.rmtree(run.resume, ignore_errors=True)
    return run


def _row(
    setting: Setting, strategy: str, strength: float | None, seed: int, result: dict[str, Any], moment: str
) -> Row:
    scores, spec = result[moment], setting.retained
    before = result["before"]["retain"][spec["original"]]
    retained = {measure: scores["retain"][name] for measure, name in spec.items()}
    return Row(
        strategy=strategy,
        strength=strength,
        seed=seed,
        task=scores["accuracy"],
        forgotten=forgetting(before, retained["original"]),
        task_ece=scores["ece"],
        original_ece=scores["calibration"][spec["original"]]["ece"],
        **retained,
    )


@dataclass(frozen=True)
class Results:
    """The rows of a study with its task, data and scale, from which tables and figures are made."""

    task: Task
    data: str
    scale: Scale
    rows: Sequence[Row]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Results:
        rows = [Row(**row) for row in value["rows"]]
        return cls(value["task"], value["data"], Scale(**value["scale"]), rows)
