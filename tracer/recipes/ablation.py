"""The paper's four ablations and further ones, at any scale.

    tracer sweep tracer.recipes.ablation:beta                                  on embedded digits, minutes on a CPU
    tracer sweep tracer.recipes.ablation:beta --data imagenet/train --jobs 8   the paper's settings on ImageNet
    tracer sweep tracer.recipes.ablation:beta --data imagenet/train --slurm    the same as a SLURM array

Without --data a small CLIP (tiny-28) is first trained on grey digits. Each run then finetunes it on coloured digits,
whose colour agrees with the group of the digit in 19 of 20 images. Retention is measured on digits with the two
colours exchanged (the distribution shift) and on grey digits. The paper's values are in docs/ablations.md.

Args:
    data: training data; by default the small version on embedded digits.
    held_out: with data, the validation data; by default 2 % of the training images.
    classes: with data, the class names: imagenet, a file with one per line, or "" for those of the data.
    model: with data, the open_clip model.
    seeds: runs per setting.
    steps: steps per run; 0 means the paper's number with data, 60 without.
"""

from __future__ import annotations

from dataclasses import replace

from tracer.recipes.paper import ROWS
from tracer.recipes.protocol import WARMUP, imagenet_steps, protocol
from tracer.runs.experiment import Experiment
from tracer.sweep import START, Sweep, product

SMALL_STEPS = 60
FULL_STEPS = imagenet_steps(10)  # 25 030: ImageNet at batch 512, warm-up included

STRENGTHS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.2, 1.5, 2.0, 3.0, 4.0, 5.0, 10.0)
BETAS = (0.2, 0.5, 0.7, 0.9, 1.0, 1.5)
INTERVALS = (1, 2, 5, 10, 50, 100, 500, 1000, 2500)  # the paper's, in steps out of 25 030
KERNELS = ("beta", "uniform", "early", "late", "triangular", "exponential")  # each in its default shape
TERMS = ("feature", "cross", "interactive", "relational")  # in the order of the paper's table


def terms(
    *,
    data: str = "",
    held_out: str = "",
    classes: str = "imagenet",
    model: str = "ViT-B-16",
    seeds: int = 3,
    steps: int = 0,
) -> Sweep:
    """Ablation 1: all 16 combinations of the four distillation terms, each at its preset weight or zero."""
    on_or_off: dict[str, tuple[float | None, ...]] = dict.fromkeys(TERMS, (0.0, None))
    return _sweep(_base(data, held_out, classes, model, steps), seeds, **on_or_off)


def strength(
    *,
    data: str = "",
    held_out: str = "",
    classes: str = "imagenet",
    model: str = "ViT-B-16",
    seeds: int = 3,
    steps: int = 0,
    values: tuple[float, ...] = STRENGTHS,
) -> Sweep:
    """Ablation 2: the weight λ of the distillation loss, 0.1 to 10.

    Args:
        values: values of λ.
    """
    return _sweep(_base(data, held_out, classes, model, steps), seeds, strength=values)


def interval(
    *,
    data: str = "",
    held_out: str = "",
    classes: str = "imagenet",
    model: str = "ViT-B-16",
    seeds: int = 3,
    steps: int = 0,
    values: tuple[int, ...] = (),
) -> Sweep:
    """Ablation 3: the interval of teacher updates, as the paper's fractions of training, with both clocks.

    "progress" keeps the kernel's shape at any interval; "updates" is the released code, where the interval also
    changes the kernel. Without data, two larger intervals are added.

    Args:
        values: steps between two updates; by default the paper's fractions of training.
    """
    length = steps or (FULL_STEPS if data else SMALL_STEPS)
    fractions = [every / FULL_STEPS for every in INTERVALS] + ([] if data else [0.2, 0.5])
    every = values or sorted({max(1, round(fraction * length)) for fraction in fractions})
    return _sweep(
        _base(data, held_out, classes, model, steps), seeds, every=every, clock=("progress", "updates")
    )


def beta(
    *,
    data: str = "",
    held_out: str = "",
    classes: str = "imagenet",
    model: str = "ViT-B-16",
    seeds: int = 3,
    steps: int = 0,
    values: tuple[float, ...] = BETAS,
) -> Sweep:
    """Ablation 4: the shape of the Beta kernel, from weight on both ends of training (0.2) to the middle (1.5).

    Args:
        values: values of both parameters of the kernel.
    """
    return _sweep(_base(data, held_out, classes, model, steps), seeds, beta=values)


def kernels(
    *,
    data: str = "",
    held_out: str = "",
    classes: str = "imagenet",
    model: str = "ViT-B-16",
    seeds: int = 3,
    steps: int = 0,
    values: tuple[str, ...] = KERNELS,
) -> Sweep:
    """Kernels with weight on both ends of training (beta), uniform, on the start, the end or the middle.

    A kernel may have a shape: --values early:1 early:3 late:1 late:3. "exponential" is an EMA as a kernel.

    Args:
        values: kernels, each NAME or NAME:SHAPE.
    """
    return _sweep(_base(data, held_out, classes, model, steps), seeds, kernel=values)


def teachers(
    *,
    data: str = "",
    held_out: str = "",
    classes: str = "imagenet",
    model: str = "ViT-B-16",
    seeds: int = 3,
    steps: int = 0,
) -> Sweep:
    """The same loss with a static, an EMA and a weighted-average teacher, a control missing in the paper.

    An EMA with a horizon of half the training has the mean age of TRACER's teacher; FLYP has no teacher.
    """
    base, start = _base(data, held_out, classes, model, steps)
    seed = range(seeds)
    runs = product(base, method=("flyp", "static_sd", "tracer"), seed=seed)
    runs += product(base, method=("ema_sd",), horizon=(0.05, 0.2, 0.5), seed=seed)
    return Sweep(runs, start)


def targets(
    *,
    data: str = "",
    held_out: str = "",
    classes: str = "imagenet",
    model: str = "ViT-B-16",
    seeds: int = 3,
    steps: int = 0,
) -> Sweep:
    """Images of the same class in a batch as negatives of each other (the paper) or as positives."""
    return _sweep(_base(data, held_out, classes, model, steps), seeds, targets=("pair", "class"))


def seldom(
    *,
    data: str = "",
    held_out: str = "",
    classes: str = "imagenet",
    model: str = "ViT-B-16",
    seeds: int = 3,
    steps: int = 0,
    values: tuple[int, ...] = (1, 2, 4),
) -> Sweep:
    """Distillation at every k-th step, with its loss scaled by k: the accuracy cost of cheaper steps.

    Args:
        values: values of k.
    """
    return _sweep(_base(data, held_out, classes, model, steps), seeds, distill_every=values)


def _sweep(runs: tuple[Experiment, Experiment | None], seeds: int, **values: object) -> Sweep:
    base, start = runs
    return Sweep(product(base, **values, seed=range(seeds)), start)  # pyright: ignore[reportArgumentType]


def _base(
    data: str, held_out: str, classes: str, model: str, steps: int
) -> tuple[Experiment, Experiment | None]:
    """The paper's row of TRACER on `data`; without data, a small version on digits and its pretraining."""
    if data:
        settings, options = ROWS["tracer"]
        base = protocol(data, held_out, classes, "released", model)
        base = replace(base, pretrained="auto", options=options, **settings)
        if steps:  # the same share of warm-up in a shorter run
            base = replace(base, steps=steps, warmup=WARMUP / FULL_STEPS)
        return base, None
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
