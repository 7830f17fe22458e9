"""The arms of PhotoShift, the settings that each of them may try, and the three scales of the study."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product, starmap
from pathlib import Path
from typing import Any, NamedTuple

from studies.emojishift.study import Setting
from studies.photoshift.bridge import PROMPT, bridge
from studies.photoshift.tasks import TASKS
from tracer.api.inputs import data_name
from tracer.runs.experiment import Experiment


@dataclass(frozen=True)
class Arm:
    """A method with options, and its settings in the small and in the large grid: as many for every arm."""

    name: str
    method: str
    few: tuple[Setting, ...]
    strengths: tuple[float, ...] = ()  # of the large grid; an arm without λ tries more rates
    options: dict[str, Any] = field(default_factory=dict)

    def settings(self, large: bool) -> tuple[Setting, ...]:
        """The settings to try."""
        if not large:
            return self.few
        return tuple(starmap(Setting, product(RATES, self.strengths or (None,)))) if self.strengths else MANY


RATES = (1e-4, 3e-4, 1e-3)
MANY = tuple(map(Setting, (1e-5, 3e-5, 6e-5, 1e-4, 1.7e-4, 3e-4, 5e-4, 1e-3, 2e-3)))
PLAIN = tuple(map(Setting, (3e-4, 1e-4, 3e-5)))
RATE, STRENGTH = 3e-4, 0.9  # of the arms that are compared at one setting
IMAGE = {"tune": "image"}  # the text tower is frozen, as it is by definition in methods with a head

# The first setting of each arm is the one for comparison without a choice: rate 3e-4, and λ = 0.9 in distillation.
# Settings were fixed after the prototype on one task and one seed, and before any run of this study.
ARMS = (
    Arm("FLYP", "flyp", PLAIN, options=IMAGE),
    Arm("direct FT", "ft", PLAIN),
    Arm("L2-SP", "l2sp", (Setting(3e-4, 0.1), Setting(3e-4, 1.0), Setting(3e-4, 0.01)), (0.01, 0.1, 1.0)),
    Arm(
        "Lipsum-FT", "lipsum", (Setting(3e-4, 1.0), Setting(3e-4, 10.0), Setting(1e-4, 1.0)), (0.1, 1.0, 10.0)
    ),
    Arm(
        "static",
        "static_sd",
        (Setting(RATE, STRENGTH), Setting(3e-4, 0.3), Setting(3e-4, 0.1)),
        (0.1, 0.3, 0.9),
        IMAGE,
    ),
    Arm(
        "EMA",
        "ema_sd",
        (Setting(RATE, STRENGTH), Setting(3e-4, 3.0), Setting(1e-4, 0.9)),
        (0.3, 0.9, 3.0),
        {**IMAGE, "horizon": 0.05},
    ),
    Arm(
        "TRACER",
        "tracer",
        (Setting(RATE, STRENGTH), Setting(3e-4, 3.0), Setting(1e-4, 0.9)),
        (0.3, 0.9, 3.0),
        IMAGE,
    ),
)
ARM_OF = {arm.name: arm for arm in ARMS}


class Scale(NamedTuple):
    """What a command runs. The images of a batch and the steps are the same for every task and arm."""

    tasks: tuple[str, ...]
    seeds: int
    size: int = 64  # pixels
    large: bool = False  # whether every arm tries nine settings instead of three
    steps: int = 24
    batch: int = 48
    alphas: tuple[float, ...] = (0.3, 0.6, 1.0)


SCALES = {
    "quick": Scale(("animals", "things"), seeds=2),
    "part": Scale(("animals", "things", "vehicles", "few animals", "photos"), seeds=2),
    "full": Scale(tuple(TASKS), seeds=5, large=True, alphas=(0.2, 0.4, 0.6, 0.8, 1.0)),
}


class Job(NamedTuple):
    """One run: what is trained, by what and how."""

    task: str
    arm: str
    setting: Setting
    seed: int
    scale: Scale

    @property
    def name(self) -> str:
        """The name of the run's folder: equal for the same run at any scale of the study."""
        rate, strength = self.setting
        value = "" if strength is None else f"-{strength:g}"
        size = "" if self.scale.size == 64 else f"-{self.scale.size}px"
        return f"{self.task}-{self.arm}-{rate:g}{value}-{self.seed}{size}".replace(" ", "_")

    @property
    def command(self) -> str:
        """The command that repeats the run."""
        rate, strength = self.setting
        words = [f"python -m studies.photoshift run {self.task!r} {self.arm!r} --rate {rate:g}"]
        words += [] if strength is None else [f"--strength {strength:g}"]
        return " ".join([*words, f"--seed {self.seed} --size {self.scale.size}"])

    def experiment(self, cache: Path) -> Experiment:
        """The experiment; its data are registered in this process."""
        arm, task = ARM_OF[self.arm], TASKS[self.task]
        train, held_out = task.training(cache, self.seed)
        strength = {} if self.setting.strength is None else {"strength": self.setting.strength}
        return Experiment(
            method=arm.method,
            options={**arm.options, **strength},
            data=data_name(train),
            held_out=data_name(held_out),
            model=str(bridge(cache, self.scale.size)),
            templates=PROMPT,
            steps=self.scale.steps,
            batch=self.scale.batch,
            lr=self.setting.rate,
            batchnorm="keep",
            augment="crop+flip",
            precision="fp32",
            seed=self.seed,
        )


def jobs(scale: Scale) -> Iterator[Job]:
    """Every run of a scale: task by task, first each arm's first setting, so that a stopped study can compare them."""
    for task in scale.tasks:
        for number in range(max(len(arm.settings(scale.large)) for arm in ARMS)):
            for seed in range(scale.seeds):
                for arm in ARMS:
                    yield Job(task, arm.name, arm.settings(scale.large)[number], seed, scale)
