"""The studies: arms (methods with options) over folds and seeds, at three scales."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product, starmap
from typing import Any, NamedTuple

from studies.emojishift.cheaper_teachers import CHEAPER
from studies.emojishift.recipe import finetuning, pretraining
from tracer.data.embedded.emojishift import Regime
from tracer.methods.base import methods
from tracer.runs.experiment import Experiment


class Trial(NamedTuple):
    """The fold that a run is tested on, and its seed."""

    fold: int
    seed: int


class Setting(NamedTuple):
    """A learning rate and a λ for validation to choose from; None is the method's default λ."""

    rate: float
    strength: float | None = None


@dataclass(frozen=True)
class Arm:
    """A method with options. Its setting is chosen by validation, or `rate` names the arm whose rate it takes."""

    name: str
    method: str
    options: dict[str, Any] = field(default_factory=dict)
    rate: str | None = None
    strengths: tuple[float | None, ...] = (None,)
    rates: tuple[float, ...] = ()  # instead of the study's, so that a method without λ has as many tries
    adapter: str | None = None

    @property
    def trains(self) -> bool:
        return self.method != "zeroshot"


@dataclass(frozen=True)
class Study:
    """Arms that are compared with each other under the same conditions."""

    name: str
    arms: tuple[Arm, ...]
    regime: Regime = "strong"
    style: str = "twemoji"
    trials: tuple[Trial, ...] = (Trial(0, 0), Trial(1, 1), Trial(2, 2))
    rates: tuple[float, ...] = (3e-5, 1e-4, 3e-4, 1e-3)  # as many for every arm
    steps: int = 150
    pretraining: int = 1200  # steps
    starts: int = 1  # number of pretrained models; seed modulo this chooses one
    alphas: tuple[float, ...] = (0.25, 0.5, 0.75, 1.0)  # WiSE-FT over every arm

    def settings(self, arm: Arm) -> tuple[Setting, ...]:
        """The settings that validation chooses from for an arm."""
        return tuple(starmap(Setting, product(arm.rates or self.rates, arm.strengths)))

    def start(self, seed: int) -> str:
        """The name of the pretrained model of a seed."""
        return f"{self.regime}-{seed % self.starts}-{self.pretraining}"

    def pretrainings(self) -> dict[str, Experiment]:
        seeds = sorted({trial.seed % self.starts for trial in self.trials} | {0})
        return {self.start(seed): pretraining(self.regime, seed, self.pretraining) for seed in seeds}


class Job(NamedTuple):
    """A run and what it is measured on."""

    study: str
    arm: str
    setting: Setting
    experiment: Experiment
    style: str
    trial: Trial
    alphas: tuple[float, ...]  # empty for a run that only chooses a rate


# Which fold's run chooses the rate for a test fold. A run validates on the fold after its own, so the emoji whose
# accuracy chooses (fold 4 for tests on 0, 1, 2; fold 0 for tests on 3, 4) are never those that are tested.
CHOSEN_ON = {0: 3, 1: 3, 2: 3, 3: 4, 4: 4}


def job(study: Study, arm: Arm, trial: Trial, setting: Setting, home: str) -> Job:
    """The run of one arm on one fold; `home` is the folder of the pretrained models."""
    strength = {} if setting.strength is None else {"strength": setting.strength}
    experiment = finetuning(
        f"{home}/{study.start(trial.seed)}",
        arm.method,
        regime=study.regime,
        style=study.style,
        fold=trial.fold,
        lr=setting.rate,
        steps=study.steps,
        seed=trial.seed,
        **arm.options,
        **strength,
    )
    experiment = replace(experiment, adapter=arm.adapter)
    alphas = study.alphas if arm.trains else (1.0,)
    return Job(study.name, arm.name, setting, experiment, study.style, trial, alphas)


def searches(study: Study, home: str) -> Iterator[Job]:
    """The runs that choose the setting of each arm that has several, one for each setting and choosing fold."""
    for arm in study.arms:
        if arm.trains and arm.rate is None and len(study.settings(arm)) > 1:
            for fold in sorted({CHOSEN_ON[trial.fold] for trial in study.trials}):
                for setting in study.settings(arm):
                    search = job(study, arm, Trial(fold, 0), setting, home)
                    experiment = replace(search.experiment, retain=())  # retention is not needed to choose
                    yield search._replace(experiment=experiment, alphas=())


ZERO_SHOT = Arm("zero-shot", "zeroshot")
TEACHERS = (
    Arm("static", "static_sd"),
    Arm("EMA", "ema_sd"),
    Arm("TRACER", "tracer"),
)
MAIN = (
    ZERO_SHOT,
    Arm("direct FT", "ft"),
    Arm("FLYP", "flyp"),
    Arm("L2-SP", "l2sp"),
    Arm("CaRot", "carot"),
    *TEACHERS,
)


# The arms that came out best on folds 0 to 2 are tested again on folds 3 and 4, which had no part in choosing them,
# beside zero-shot, the teachers at their defaults, a static teacher and L2-SP at a large λ, and Lipsum-FT.
STEADY = Arm("steady", "tracer", {"interactive": 0.0, "strength": 10.0})
LIPSUM = Arm("lipsum", "lipsum")
LPFT = Arm("lpft", "lpft")
# Rates are chosen by task accuracy alone, whatever is forgotten: TRACER also at the rate that the others took.
AT_ONE_RATE = Arm("TRACER at 0.001", "tracer", rates=(1e-3,))
FRESH = tuple(Trial(fold, seed) for fold in (3, 4) for seed in (fold, fold + 2))
PROVEN = (
    ZERO_SHOT,
    *TEACHERS[::2],
    STEADY,
    LIPSUM,
    Arm("static λ=10", "static_sd", {"strength": 10.0}),
    Arm("L2-SP λ=1", "l2sp", {"strength": 1.0}),
)


def others() -> tuple[Arm, ...]:
    """Every further method that needs no data of its own."""
    known = {arm.method for arm in (*MAIN, STEADY)} | {"supervised", "arf"}
    return tuple(Arm(name, name) for name in methods() if name not in known)


def frontier(strengths: tuple[float, ...], *arms: Arm) -> tuple[Arm, ...]:
    """Each arm at several λ, at the learning rate of the arm it varies."""
    return tuple(
        Arm(f"{arm.name} λ={strength:g}", arm.method, {"strength": strength}, rate=arm.name)
        for arm in arms
        for strength in strengths
    )


def strengths(distillation: tuple[float, ...], l2sp: tuple[float, ...]) -> tuple[Arm, ...]:
    """The three teachers and L2-SP over λ, whose scales are not comparable."""
    l2 = MAIN[3]
    return (l2, *TEACHERS, *frontier(l2sp, l2), *frontier(distillation, *TEACHERS))


def weak_others() -> tuple[Arm, ...]:
    """For the weak regime: methods with a classification head."""
    headed = (arm for arm in others() if arm.name in ("carft", "ldifs"))
    return (LIPSUM, replace(LIPSUM, name="lipsum WMA", options={"beta": 0.5}), *headed, LPFT)


def weak_strengths() -> tuple[Arm, ...]:
    """For the weak regime: a static teacher at smaller λ, and moving ones at a larger λ."""
    static, ema, tracer = TEACHERS
    return (*TEACHERS, *frontier((0.03, 0.1, 0.3), static), *frontier((3.0,), ema, tracer))


def chosen_strengths() -> tuple[Arm, ...]:
    """λ chosen together with the rate: a tenth of the default, the default and ten times it, more for L2-SP.

    Methods without λ try as many rates instead, so that all have the same number of tries.
    """
    nine = (1e-4, 1.3e-4, 1.8e-4, 2.4e-4, 3e-4, 4.2e-4, 5.6e-4, 7.5e-4, 1e-3)
    grids = {"L2-SP": (0.01, 1.0, 10.0), "CaRot": (0.15, 1.5, 15.0), "lipsum": (0.1, 1.0, 10.0)}
    more_rates = tuple(replace(arm, rates=nine) for arm in MAIN[1:3])
    more_strengths = (
        replace(arm, strengths=grids.get(arm.name, (0.1, 0.9, 10.0))) for arm in (*MAIN[3:], LIPSUM)
    )
    return (*more_rates, *more_strengths)


def variants(intervals: tuple[int, ...] = (5, 50)) -> tuple[Arm, ...]:
    """TRACER with one option changed: kernel, interval, clock, terms, targets; and EMA with TRACER's mean age."""
    alone = {"feature": 0.0, "relational": 0.0, "interactive": 0.0, "cross": 0.0}
    weights = {"feature": 2000 / 512, "relational": 0.5, "interactive": 1.0, "cross": 1.0}
    changed: dict[str, dict[str, Any]] = {
        **{f"TRACER β={beta:g}": {"beta": beta} for beta in (0.2, 1.0, 1.5)},
        **{f"TRACER every {every}": {"every": every} for every in intervals},
        **{
            f"TRACER every {every}, released clock": {"every": every, "clock": "updates"}
            for every in intervals
        },
        **{f"TRACER {term} only": alone | {term: weights[term]} for term in weights},
        **{f"TRACER without {term}": {term: 0.0} for term in weights},
        "TRACER pairs": {"targets": "pair"},
        "TRACER image tower": {"tune": "image"},
    }
    varied = tuple(Arm(name, "tracer", options, rate="TRACER") for name, options in changed.items())
    matched = Arm("EMA of matched age", "ema_sd", {"horizon": 0.5}, rate="EMA")
    return (*varied, Arm("FLYP pairs", "flyp", {"targets": "pair"}, rate="FLYP"), matched, STEADY)


def adapters() -> tuple[Arm, ...]:
    """TRACER of all weights and of fewer, and LoRA without a teacher."""
    return (
        ZERO_SHOT,
        TEACHERS[2],
        Arm("TRACER LoRA", "tracer", adapter="lora"),
        Arm("TRACER last-1", "tracer", {"tune": "last-1"}),
        Arm("TRACER prompts", "tracer", adapter="prompts"),
        Arm("FLYP LoRA", "flyp", adapter="lora"),
    )


def cheaper_teachers() -> tuple[Arm, ...]:
    """FLYP, TRACER, and TRACER with a cheaper forward of the teacher."""
    return (MAIN[2], TEACHERS[2], *(Arm(name, name, rate="TRACER") for name in CHEAPER))


SCALES = ("quick", "adapters", "teachers", "part", "full")
EVERY_FOLD = tuple(Trial(fold, fold) for fold in range(5))
TWO_SEEDS = tuple(Trial(fold, seed) for fold in range(3) for seed in (fold, fold + 3))
THREE_SEEDS = tuple(Trial(fold, seed) for seed in range(3) for fold in range(5))
FAST = (1e-4, 3e-4, 1e-3, 3e-3)  # for the weak regime and the second style


def studies(scale: str) -> tuple[Study, ...]:
    """The studies of a scale: the first three in minutes, "part" in four hours of two cores, "full" in a day."""
    main = Study("main", MAIN)
    if scale == "quick":
        few = (*MAIN[:3], *TEACHERS)
        return (replace(main, arms=few, rates=(1e-3,), steps=40, pretraining=300, alphas=(0.5, 1.0)),)
    if scale == "adapters":
        arms = adapters()
        rates = (3e-4, 1e-3, 3e-3, 1e-2)  # adapters need higher ones than all weights
        quick = replace(main, steps=40, pretraining=300, alphas=(1.0,))
        return (replace(quick, name="adapters", arms=arms, rates=rates),)
    if scale == "teachers":  # at the rate that validation chose for TRACER among those of "adapters"
        small = replace(main, rates=(1e-3,), steps=40, pretraining=300, alphas=(1.0,))
        return (replace(small, name="teachers", arms=cheaper_teachers()),)
    if scale == "part":
        small = replace(main, steps=80, alphas=(0.5, 1.0))
        unmixed = replace(small, alphas=(1.0,))
        stiff = strengths((10.0,), (0.1, 1.0, 10.0))
        weak = replace(small, name="weak", regime="weak", arms=(*MAIN, STEADY, LIPSUM), rates=FAST, starts=3)
        return (
            replace(small, trials=TWO_SEEDS, alphas=main.alphas),
            replace(unmixed, name="strengths", arms=(*stiff, *frontier((0.1,), TEACHERS[2]))),
            weak,
            replace(weak, name="weak strengths", arms=weak_strengths(), alphas=(1.0,)),
            replace(small, name="fresh folds", arms=PROVEN, trials=FRESH),
            replace(small, name="three starts", arms=(*MAIN[:3], *TEACHERS, STEADY, LIPSUM), starts=3),
            replace(
                small,
                name="second style",
                style="openmoji-color",
                arms=(*MAIN, AT_ONE_RATE, LIPSUM, LPFT),
                rates=FAST,
            ),
            replace(unmixed, name="variants", arms=(MAIN[2], *TEACHERS, *variants())),
            replace(unmixed, name="chosen λ", arms=chosen_strengths(), rates=small.rates[1:]),
            replace(weak, name="weak others", arms=weak_others()),
            replace(small, name="others at one rate", arms=others(), rates=(1e-4,)),  # the usual choice above
        )
    every = replace(main, trials=EVERY_FOLD, starts=3)
    weak = replace(every, name="weak", regime="weak", arms=(*MAIN, STEADY, LIPSUM), rates=FAST)
    return (
        replace(main, trials=THREE_SEEDS),
        replace(every, name="three starts", arms=(*MAIN[:3], *TEACHERS, STEADY, LIPSUM)),
        replace(main, name="strengths", arms=strengths((0.1, 0.3, 3.0, 10.0), (0.1, 1.0, 10.0))),
        replace(main, name="variants", arms=(*MAIN[2:3], *TEACHERS, *variants())),
        weak,
        replace(weak, name="weak strengths", arms=weak_strengths()),
        replace(weak, name="weak others", arms=weak_others()),
        replace(
            main,
            name="second style",
            style="openmoji-color",
            arms=(*MAIN, AT_ONE_RATE, LIPSUM, LPFT),
            trials=EVERY_FOLD,
            rates=FAST,
        ),
        replace(main, name="fresh folds", arms=PROVEN, trials=FRESH),
        replace(main, name="others", arms=others()),
        replace(main, name="chosen λ", arms=chosen_strengths(), rates=main.rates[1:]),
    )
