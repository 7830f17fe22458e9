"""The paper's four ablations and more, at any scale.

    tracer sweep recipes.ablation:beta                                   on the embedded digits, minutes on a CPU
    tracer sweep recipes.ablation:beta --data imagenet/ --jobs 8         the paper's settings on your data
    tracer sweep recipes.ablation:beta --data imagenet/ --slurm          the same as a SLURM array

Without --data a small CLIP (tiny-28) first learns grey digits; each run then learns digits painted so that
colour betrays the group of the digit 19 times in 20. What it should keep is measured on digits with the two
colours exchanged (the distribution shift) and on the grey ones. The paper's values are in docs/ablations.md.

Args:
    data: what to finetune on; without it the small version on embedded digits.
    model: of open_clip, where data are given.
    seeds: runs of each setting.
    steps: length of a run; 0 is the paper's with data, 60 without.
"""

from __future__ import annotations

from tracer.runs.experiment import Experiment
from tracer.sweep import START, Sweep, product

SMALL_STEPS = 60
FULL_STEPS = 25_030  # 10 epochs of ImageNet at batch 512, warm-up included

STRENGTHS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.2, 1.5, 2.0, 3.0, 4.0, 5.0, 10.0)
BETAS = (0.2, 0.5, 0.7, 0.9, 1.0, 1.5)
INTERVALS = (1, 2, 5, 10, 50, 100, 500, 1000, 2500)  # the paper's, in steps of its 25 030
KERNELS = ("beta", "uniform", "early", "late", "triangular", "exponential")  # each in its default shape
TERMS = ("feature", "cross", "interactive", "relational")  # in the order of the paper's table


def terms(*, data: str = "", model: str = "ViT-B-16", seeds: int = 3, steps: int = 0) -> Sweep:
    """Ablation 1: all 16 combinations of the four distillation terms, each at its preset weight or at zero."""
    on_or_off: dict[str, tuple[float | None, ...]] = dict.fromkeys(TERMS, (0.0, None))
    return _swept(data, model, seeds, steps, **on_or_off)


def strength(
    *,
    data: str = "",
    model: str = "ViT-B-16",
    seeds: int = 3,
    steps: int = 0,
    values: tuple[float, ...] = STRENGTHS,
) -> Sweep:
    """Ablation 2: the weight λ of all distillation together, 0.1 to 10.

    Args:
        values: of λ.
    """
    return _swept(data, model, seeds, steps, strength=values)


def interval(
    *, data: str = "", model: str = "ViT-B-16", seeds: int = 3, steps: int = 0, values: tuple[int, ...] = ()
) -> Sweep:
    """Ablation 3: how often the teacher moves, as the paper's shares of training and more, under both clocks.

    "progress" keeps the kernel's shape at any interval; "updates" is the released code, where a rarer update
    also changes the kernel.

    Args:
        values: steps between two updates; none are the paper's shares of training.
    """
    length = steps or (FULL_STEPS if data else SMALL_STEPS)
    shares = [every / FULL_STEPS for every in INTERVALS] + ([] if data else [0.2, 0.5])
    every = values or sorted({max(1, round(share * length)) for share in shares})
    return _swept(data, model, seeds, steps, every=every, clock=("progress", "updates"))


def beta(
    *,
    data: str = "",
    model: str = "ViT-B-16",
    seeds: int = 3,
    steps: int = 0,
    values: tuple[float, ...] = BETAS,
) -> Sweep:
    """Ablation 4: the shape of the Beta kernel, from both ends of the path (0.2) to its middle (1.5).

    Args:
        values: of both parameters of the kernel.
    """
    return _swept(data, model, seeds, steps, beta=values)


def kernels(
    *,
    data: str = "",
    model: str = "ViT-B-16",
    seeds: int = 3,
    steps: int = 0,
    values: tuple[str, ...] = KERNELS,
) -> Sweep:
    """Which moments of the path should count: both ends (beta), all alike, the start, the end, the middle.

    A family may be given a shape: --values early:1 early:3 late:1 late:3. exponential is an EMA as a kernel.

    Args:
        values: kernels, each NAME or NAME:SHAPE.
    """
    return _swept(data, model, seeds, steps, kernel=values)


def teachers(*, data: str = "", model: str = "ViT-B-16", seeds: int = 3, steps: int = 0) -> Sweep:
    """The control that the paper lacks: static, EMA and weighted-average teacher under one and the same loss.

    EMA with a horizon of half the training has the mean age of TRACER's teacher; FLYP has no teacher.
    """
    base, start = _base(data, model, steps)
    seed = range(seeds)
    runs = product(base, method=("flyp", "static_sd", "tracer"), seed=seed)
    runs += product(base, method=("ema_sd",), horizon=(0.05, 0.2, 0.5), seed=seed)
    return Sweep(runs, start)


def targets(*, data: str = "", model: str = "ViT-B-16", seeds: int = 3, steps: int = 0) -> Sweep:
    """Are images of one class in a batch negatives of each other (the paper) or positives?"""
    return _swept(data, model, seeds, steps, targets=("pair", "class"))


def seldom(
    *,
    data: str = "",
    model: str = "ViT-B-16",
    seeds: int = 3,
    steps: int = 0,
    values: tuple[int, ...] = (1, 2, 4),
) -> Sweep:
    """What a cheaper step costs: listening to the teacher at each step, or each k-th, k times as loudly.

    Args:
        values: of k.
    """
    return _swept(data, model, seeds, steps, distill_every=values)


def _swept(data: str, model: str, seeds: int, steps: int, **values: object) -> Sweep:
    base, start = _base(data, model, steps)
    return Sweep(product(base, **values, seed=range(seeds)), start)  # pyright: ignore[reportArgumentType]


def _base(data: str, model: str, steps: int) -> tuple[Experiment, Experiment | None]:
    """The paper's ViT-B/16 settings on the data given; without data, their small version on digits."""
    if data:
        paper = {"batch": 512, "lr": 1e-5, "warmup": 500 / FULL_STEPS, "decay": 0.1, "decay_on": "all"}
        options = {"targets": "pair"}
        return Experiment(data=data, model=model, steps=steps or FULL_STEPS, options=options, **paper), None
    start = Experiment(
        method="flyp",
        data="digits",
        held_out="digits",
        model="tiny-28",
        pretrained="none",
        steps=200,
        batch=128,
        lr=1e-3,
        augment="none",
    )
    small = Experiment(
        data="digits:coloured",
        held_out="digits:coloured",
        retain=("digits:flipped", "digits"),
        model=START,
        steps=steps or SMALL_STEPS,
        batch=64,
        lr=3e-4,
        augment="none",
    )
    return small, start
