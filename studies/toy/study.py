"""The experiment run: one pretraining a seed, one ordinary run directory a variant, rows read off their results."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from studies.toy.frontier import Row, forgetting
from studies.toy.strategies import Variant
from studies.toy.teaching import Curves, curves, teachers
from tracer.cli.demo import Watch, carry
from tracer.models.export import export
from tracer.runs.experiment import Experiment
from tracer.runs.run import Run

Task = Literal["colour", "group"]


@dataclass(frozen=True)
class Scale:
    """How much is trained: steps and images a step, before and in finetuning."""

    pretraining: int = 240
    pretraining_batch: int = 128
    steps: int = 60
    batch: int = 64
    teaching: int = 500  # steps of the runs that follow a teacher, which are long so that it can move rarely
    teaching_batch: int = 32

    @classmethod
    def full(cls) -> Scale:
        """As in the paper: ten epochs of all of MNIST each time."""
        epochs = 10 * 60_000 // 128
        return cls(pretraining=epochs, steps=epochs, batch=128, teaching=epochs, teaching_batch=128)


@dataclass(frozen=True)
class Setting:
    """Where the runs lie, what is trained on, how much, and who watches."""

    out: Path
    watch: Watch
    task: Task = "colour"
    scale: Scale = Scale()
    mnist: Path | None = None  # a folder with all of MNIST; by default the embedded digits

    def data(self, kind: str = "") -> str:
        """The name of a data set: grey digits, or painted ones of some kind."""
        name = f"digits:{kind}" if kind else "digits"
        return name if self.mnist is None else f"{name}@{self.mnist}"

    @property
    def kept(self) -> dict[str, str]:
        """What is measured besides the new task, by the name of its measure."""
        kinds = {"original": "", "coloured": "coloured", "flipped": "flipped"}
        return {measure: self.data(kind) for measure, kind in kinds.items()}


def study(setting: Setting, variants: Iterable[Variant], seeds: Iterable[int]) -> Iterator[Row]:
    """Every variant for every seed; what lies finished in the folder is only read."""
    variants = list(variants)
    for seed in seeds:
        model = pretrained(setting, seed)
        for index, variant in enumerate(variants):
            run = finetuned(setting, variant, model, seed)
            result = run.result
            if index == 0:
                yield _row(setting, "pretrained", None, seed, result, "before")
            yield _row(setting, variant.strategy, variant.strength, seed, result, "after")


def taught(setting: Setting, seed: int) -> Iterator[tuple[str, Curves]]:
    """Every teacher under TRACER's loss, and what happened between it and its student."""
    scale, model = setting.scale, pretrained(setting, seed)
    for title, name, method, options in teachers(scale.teaching):
        experiment = replace(
            _second(setting, model, seed, method, {**options, "tune": "image"}),
            steps=scale.teaching,
            batch=scale.teaching_batch,
            warmup=0.02,  # as in the released runs
        )
        folder = model.with_name(setting.task) / "teaching" / name
        yield title, curves(_carry(experiment, folder, setting.watch, evaluations=10))


def pretrained(setting: Setting, seed: int) -> Path:
    """A model that reads grey digits, as a folder that can be loaded."""
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
    run = _carry(experiment, folder.with_name("pretraining"), setting.watch)
    if not folder.exists():
        export(run.student(), folder)
    return folder


def finetuned(setting: Setting, variant: Variant, model: Path, seed: int) -> Run:
    """The pretrained image tower after the new task, measured on it and on what it knew before."""
    experiment = _second(setting, model, seed, variant.method, dict(variant.options))
    return _carry(experiment, model.with_name(setting.task) / variant.name, setting.watch)


def _second(setting: Setting, model: Path, seed: int, method: str, options: dict[str, Any]) -> Experiment:
    """There is no weight decay: it would pull every strategy to zero, and the paper's analysis has none."""
    return Experiment(
        method=method,
        options=options,
        data=setting.data(setting.task),
        held_out=setting.data(setting.task),
        retain=tuple(setting.kept.values()),
        model=str(model),
        steps=setting.scale.steps,
        batch=setting.scale.batch,
        lr=5e-4,
        decay=0.0,
        augment="none",
        seed=seed,
    )


def _carry(experiment: Experiment, folder: Path, watch: Watch, evaluations: int = 1) -> Run:
    """A finished run without its checkpoints, which nobody will go on from."""
    steps = experiment.steps or 1
    pace = {"save_every": max(60, steps // 20), "evaluate_every": max(1, steps // evaluations)}
    run = carry(experiment, folder, watch, **pace)
    shutil.rmtree(run.resume, ignore_errors=True)
    return run


def _row(
    setting: Setting, strategy: str, strength: float | None, seed: int, result: dict[str, Any], moment: str
) -> Row:
    found, spec = result[moment], setting.kept
    before = result["before"]["retain"][spec["original"]]
    kept = {measure: found["retain"][name] for measure, name in spec.items()}
    return Row(
        strategy=strategy,
        strength=strength,
        seed=seed,
        task=found["accuracy"],
        forgotten=forgetting(before, kept["original"]),
        task_ece=found["ece"],
        original_ece=found["calibration"][spec["original"]]["ece"],
        **kept,
    )


@dataclass(frozen=True)
class Found:
    """The rows of a study with what made them: all that tables and figures are drawn from."""

    task: Task
    data: str
    scale: Scale
    rows: Sequence[Row]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Found:
        rows = [Row(**row) for row in value["rows"]]
        return cls(value["task"], value["data"], Scale(**value["scale"]), rows)
