"""The arms of PhotoShift, the settings that each of them may try, and the scales of the study."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from studies.emojishift.study import Setting
from studies.emojishift.study import variants as emoji_variants
from studies.photoshift.bridge import PROMPT, bridge
from studies.photoshift.tasks import KNOWLEDGE, LENGTHS, MAIN_TASKS, TASKS
from tracer.api.inputs import data_name
from tracer.runs.experiment import Experiment


@dataclass(frozen=True)
class Arm:
    """A method with options, and the settings that it tries: as many for all arms that are compared over them."""

    name: str
    method: str
    settings: tuple[Setting, ...]
    options: dict[str, Any] = field(default_factory=dict)
    adapter: str | None = None


PLAIN = tuple(map(Setting, (3e-4, 1e-4, 3e-5)))
RATE, STRENGTH = 3e-4, 0.9  # of the arms that are compared at one setting
MOVING = (
    "direct FT",
    "static",
    "EMA",
    "TRACER",
)  # compared where only the number of steps or the start differs
DRIFT = ("direct FT", "TRACER")  # whose layers are compared with those of the start
IMAGE = {"tune": "image"}  # the text tower is frozen, as it is by definition in methods with a head

# The first setting of each arm is the one for comparison without a choice: rate 3e-4, and λ = 0.9 in distillation.
# Settings were fixed after the prototype on one task and one seed, and before any run of this study.
FIRST = Setting(RATE, STRENGTH)
ARMS = (
    Arm("FLYP", "flyp", PLAIN, IMAGE),
    Arm("direct FT", "ft", PLAIN),
    Arm("L2-SP", "l2sp", (Setting(RATE, 0.1), Setting(RATE, 1.0), Setting(RATE, 0.01))),
    Arm("Lipsum-FT", "lipsum", (Setting(RATE, 1.0), Setting(RATE, 10.0), Setting(1e-4, 1.0))),
    Arm("static", "static_sd", (FIRST, Setting(RATE, 0.3), Setting(RATE, 0.1)), IMAGE),
    Arm("EMA", "ema_sd", (FIRST, Setting(RATE, 3.0), Setting(1e-4, 0.9)), {**IMAGE, "horizon": 0.05}),
    Arm("TRACER", "tracer", (FIRST, Setting(RATE, 3.0), Setting(1e-4, 0.9)), IMAGE),
)


def variants() -> tuple[Arm, ...]:
    """The variants of EmojiShift, TRACER at two further λ, and with a teacher of fewer pairs, all at one setting."""
    changed = [
        Arm(
            arm.name,
            arm.method,
            (FIRST if arm.method in ("tracer", "ema_sd") else Setting(RATE),),
            {**arm.options, **IMAGE},
        )
        for arm in emoji_variants(intervals=(5, 12))
        if arm.options != IMAGE  # which all arms have here
    ]
    other = [Arm(f"TRACER λ={value:g}", "tracer", (Setting(RATE, value),), IMAGE) for value in (0.1, 10.0)]
    fewer = [
        Arm(f"TRACER, {part} of the pairs", "tracer", (FIRST,), {**IMAGE, "distill_pairs": every})
        for every, part in ((2, "half"), (4, "a quarter"))
    ]
    return (*changed, *other, *fewer)


VARIANTS = variants()
# Less than the image tower: LoRA of its convolutions at ten times the rate and more, and its last two of seven stages.
ADAPTED = (
    Arm(
        "TRACER LoRA", "tracer", tuple(Setting(rate, STRENGTH) for rate in (3e-3, 1e-2, 3e-2)), IMAGE, "lora"
    ),
    Arm("FLYP LoRA", "flyp", tuple(map(Setting, (3e-3, 1e-3, 1e-2))), IMAGE, "lora"),
    Arm(
        "TRACER last-2",
        "tracer",
        tuple(Setting(rate, STRENGTH) for rate in (RATE, 1e-3, 1e-4)),
        {"tune": "image-last-2"},
    ),
)
# At its default λ, at a larger one, and at a lower rate, as TRACER; on fewer seeds, so that it is compared apart.
CAROT = Arm("CaRot", "carot", (Setting(RATE, 1.5), Setting(RATE, 5.0), Setting(1e-4, 1.5)), IMAGE)
ARM_OF = {arm.name: arm for arm in (*ARMS, *VARIANTS, *ADAPTED, CAROT)}


class Scale(NamedTuple):
    """What a command runs. Images of a batch are the same for every task and arm."""

    tasks: tuple[str, ...]
    seeds: int
    size: int = 64  # pixels
    arms: tuple[Arm, ...] = ARMS
    batch: int = 48
    alphas: tuple[float, ...] = (0.3, 0.6, 1.0)


SCALES = {
    "quick": Scale(("animals", "things"), seeds=2),
    "part": Scale(MAIN_TASKS[:5], seeds=2),
    "full": Scale(MAIN_TASKS, seeds=5),
    "variants": Scale(("animals", "things"), seeds=2, arms=VARIANTS),
    "adapters": Scale(("animals", "things"), seeds=3, arms=ADAPTED),
    "lengths": Scale(tuple(LENGTHS), seeds=2, arms=tuple(ARM_OF[name] for name in MOVING)),
    "carot": Scale(MAIN_TASKS, seeds=2, arms=(CAROT,)),
    "knowledge": Scale(tuple(KNOWLEDGE), seeds=3, arms=tuple(ARM_OF[name] for name in MOVING)),
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
    def layers(self) -> bool:
        """Whether the CKA of each layer with that of the start is measured."""
        return self.arm in DRIFT and self.setting == ARM_OF[self.arm].settings[0]

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
            adapter=arm.adapter,
            options={**arm.options, **strength},
            data=data_name(train),
            held_out=data_name(held_out),
            model=str(bridge(cache, self.scale.size, task.names)),
            templates=PROMPT,
            steps=task.steps,
            batch=self.scale.batch,
            lr=self.setting.rate,
            batchnorm="keep",
            augment="crop+flip",
            precision="fp32",
            seed=self.seed,
        )


def jobs(scale: Scale) -> Iterator[Job]:
    """Every run of a scale: seed by seed, so that a stopped study has seen its tasks equally often.

    In a task, each arm's first setting comes first, so that arms can be compared at one.
    """
    for seed, task in product(range(scale.seeds), scale.tasks):
        for number in range(max(len(arm.settings) for arm in scale.arms)):
            for arm in scale.arms:
                yield Job(task, arm.name, arm.settings[number], seed, scale)
