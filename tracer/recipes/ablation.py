"""The paper's four ablations and further ones, at any scale.

    tracer sweep tracer.recipes.ablation:beta                                  on embedded digits, minutes on a CPU
    tracer sweep tracer.recipes.ablation:beta --data imagenet --jobs 8         the paper's settings on ImageNet
    tracer sweep tracer.recipes.ablation:beta --data imagenet --slurm          the same as a SLURM array

Without --data a small CLIP (tiny-28) is first trained on grey digits. Each run then finetunes it on coloured digits,
whose colour agrees with the group of the digit in 19 of 20 images. Retention is measured on digits with the two
colours exchanged (the distribution shift) and on grey digits. The paper's values are in docs/ablations.md.

Args:
    data: a folder with ImageNet's train and val, or training data; by default the small version on embedded digits.
    held_out: with data, the validation data; by default val beside train, else a share of the training images.
    root: with data, the folder of ImageNet's test sets; by default --data.
    classes: with data, the class names: imagenet, a file with one per line, or "" for those of the data.
    model: with data, the open_clip model.
    seeds: runs per setting.
    steps: steps per run; 0 means the paper's number with data, 60 without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from tracer.core.errors import UserError
from tracer.recipes.paper import ROWS
from tracer.recipes.protocol import WARMUP, compared, imagenet_steps, protocol
from tracer.runs.experiment import Experiment
from tracer.sweep.product import START, Sweep, product

SMALL_STEPS, FULL_STEPS = 60, imagenet_steps(10)  # 25 030: ImageNet at batch 512
INTERVALS = (1, 2, 5, 10, 50, 100, 500, 1000, 2500)  # the paper's, in steps out of 25 030
TERMS = ("feature", "cross", "interactive", "relational")  # in the order of the paper's table
TABLES = {"feature": "terms", "every": "interval"}  # published tables that are not called like the option
PRETRAINING = Experiment(
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
SMALL = Experiment(
    data="digits:coloured",
    held_out="digits:coloured",
    retain=("digits:flipped", "digits"),
    model=START,
    batch=64,
    lr=3e-4,
    augment="none",
)

Axes = dict[str, Iterable[Any]]  # values by the name of a setting or option


def _ablation(
    about: str,
    values: tuple[Any, ...],
    meaning: str,
    axes: str | Callable[[tuple[Any, ...], int], list[Axes]],
) -> Callable[..., Sweep]:
    """A recipe that varies the option `axes`, or makes the products `axes(values, steps)`."""

    def recipe(
        *,
        data: str = "",
        held_out: str = "",
        root: str = "",
        classes: str = "imagenet",
        model: str = "ViT-B-16",
        seeds: int = 3,
        steps: int = 0,
        values: tuple[Any, ...] = values,
    ) -> Sweep:
        if not values:
            raise UserError("--values: give at least one value")
        base = _base(data, held_out, classes, model, steps)
        products = [{axes: values}] if isinstance(axes, str) else axes(values, base.steps or FULL_STEPS)
        names = [name for each in products for name in each]
        runs = [run for each in products for run in product(base, **each, seed=range(seeds))]
        if not data:
            return Sweep(tuple(runs), PRETRAINING)
        title, table = about.partition(":")[0], TABLES.get(names[0], names[0])
        return compared(runs, title, table, lambda run: _row(run, names), data=data, root=root)

    recipe.__doc__ = f"{about}\n\nArgs:\n    values: {meaning}."
    recipe.__annotations__["values"] = tuple[type(values[0]), ...]  # pyrefly: ignore
    return recipe


def _row(run: Experiment, names: list[str]) -> str:
    """The row of a run: the values of what varies, as in the paper's tables."""
    if names[0] in TERMS:
        return "".join("0" if run.options.get(name) == 0 else "1" for name in TERMS)
    values = [run.method if name == "method" else run.options.get(name, "") for name in dict.fromkeys(names)]
    shown = [value if isinstance(value, str) else f"{value:g}" for value in values]
    return ", ".join(word for word in shown if word not in ("", "updates"))  # the paper has that clock


def _base(data: str, held_out: str, classes: str, model: str, steps: int) -> Experiment:
    """The paper's row of TRACER on `data`, with the same share of warm-up in a shorter run; else the small version."""
    if not data:
        return replace(SMALL, steps=steps or SMALL_STEPS)
    settings, options = ROWS["tracer"]
    base = replace(
        protocol(data, held_out, classes, model=model), pretrained="auto", options=options, **settings
    )
    return replace(base, steps=steps, warmup=WARMUP / FULL_STEPS) if steps else base


def _intervals(values: tuple[int, ...], steps: int) -> list[Axes]:
    """The paper's intervals as shares of training, two larger below 1000 steps, or others as given; both clocks."""
    if values == INTERVALS:
        shares = [every / FULL_STEPS for every in values] + ([0.2, 0.5] if steps < 1000 else [])
        values = tuple(sorted({max(1, round(share * steps)) for share in shares}))
    return [{"every": values, "clock": ("progress", "updates")}]


terms = _ablation(
    "Ablation 1: all 16 combinations of the four distillation terms, each at its preset weight or zero.",
    TERMS,
    "terms to switch off and on",
    lambda values, _: [dict.fromkeys(values, (0.0, None))],
)
strength = _ablation(
    "Ablation 2: the weight λ of the distillation loss, 0.1 to 10.",
    (0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.2, 1.5, 2.0, 3.0, 4.0, 5.0, 10.0),
    "values of λ",
    "strength",
)
interval = _ablation(
    """Ablation 3: the interval of teacher updates, as the paper's fractions of training, with both clocks.

"progress" keeps the kernel's shape at any interval; "updates" is the released code, where the interval also changes
the kernel. In runs of less than 1000 steps two larger intervals are added.""",
    INTERVALS,
    "steps between two updates; the default is scaled to the length of the run",
    _intervals,
)
beta = _ablation(
    "Ablation 4: the shape of the Beta kernel, from weight on both ends of training (0.2) to the middle (1.5).",
    (0.2, 0.5, 0.7, 0.9, 1.0, 1.5),
    "values of both parameters of the kernel",
    "beta",
)
kernels = _ablation(
    """Kernels: weight on both ends of training (beta), uniform, on the start, the end or the middle.

A kernel may have a shape: --values early:1 early:3 late:1 late:3. "exponential" is an EMA as a kernel.""",
    ("beta", "uniform", "early", "late", "triangular", "exponential"),
    "kernels, each NAME or NAME:SHAPE",
    "kernel",
)
teachers = _ablation(
    """Teachers: the same loss with a static, an EMA and a weighted-average one, a control missing in the paper.

An EMA with a horizon of half the training has the mean age of TRACER's teacher; FLYP has no teacher.""",
    (0.05, 0.2, 0.5),
    "horizons of the EMAs, as shares of training",
    lambda values, _: [
        {"method": ("flyp", "static_sd", "tracer")},
        {"method": ("ema_sd",), "horizon": values},
    ],
)
targets = _ablation(
    "Targets: images of the same class in a batch as negatives of each other (the paper) or as positives.",
    ("pair", "class"),
    "kinds of targets",
    "targets",
)
