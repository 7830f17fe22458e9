"""Training curves: losses, held-out accuracy, and the divergence of teacher and student."""

from __future__ import annotations

from itertools import starmap
from statistics import fmean

from tracer.report.chart import Axis, Chart, Point, Series
from tracer.report.comparison import Group, Setting

STEP = Axis("step", whole=True)

BOTH_WAYS = "Mean over images to captions and captions to images, as in the paper's figures."

Texts = dict[str, tuple[str, str, bool]]  # by name in the log: title, caption, percent

LEARNING: Texts = {
    "accuracy": (
        "Held-out accuracy",
        "Before training, a few times in it, and at its end. Without classes: the share of images whose own caption is "
        "the nearest (R@1).",
        True,
    ),
    "loss": ("Loss", "Sum of all terms; not comparable between methods with different terms.", False),
    "scale": ("Inverse temperature", "exp(logit_scale), which CLIP keeps below 100.", False),
}
TEACHER: Texts = {
    "weight_gap": ("Distance in weights", "‖student − teacher‖ over all parameters.", False),
    "kl": ("Teacher–student divergence", "KL in nats. At zero the teacher agrees with the student.", False),
    "agreement": ("Agreement", "Share of images for which both choose the same caption of the batch.", True),
    "top5_overlap": (
        "Top-5 overlap",
        "Share of the teacher's five best captions that the student has too.",
        True,
    ),
    "teacher_confidence": ("Teacher's confidence", "Mean of its largest probability over the batch.", True),
    "teacher_entropy": ("Teacher's entropy", "In nats; at most the logarithm of the batch size.", False),
    "student_entropy": ("Student's entropy", "In nats, on the same batches.", False),
    "teacher_confidence_both": ("Teacher's confidence, both ways", BOTH_WAYS, True),
    "teacher_entropy_both": ("Teacher's entropy, both ways", BOTH_WAYS, False),
    "student_entropy_both": ("Student's entropy, both ways", BOTH_WAYS, False),
    "teacher_pair": ("True pair, teacher", "Probability the teacher gives to an image's own caption.", True),
    "student_pair": ("True pair, student", "Probability the student gives to an image's own caption.", True),
    "teacher_age": ("Mean age of the teacher", "Mean age of the averaged weights, in steps.", False),
}
HELD_OUT = ("accuracy", "weight_gap")  # in lines about the held-out set; the others are of training batches


def learning(group: Group) -> list[Chart]:
    """Losses and held-out accuracy."""
    return _charts(group, LEARNING)


def teaching(group: Group) -> list[Chart]:
    """Measures of teacher and student; empty where no run has a teacher."""
    return _charts(group, TEACHER)


def terms(group: Group) -> list[Chart]:
    """The terms of the loss before weighting, one chart per setting."""
    charts = []
    for setting in group.settings:
        run = setting.runs[0]
        names = [name for name in run.logged("train") if name not in (*LEARNING, *TEACHER, "lr")]
        curves = ((name.replace("_", " "), slot, run.curve("train", name)) for slot, name in enumerate(names))
        series = tuple(
            Series(name, slot, tuple(starmap(Point, curve.items()))) for name, slot, curve in curves if curve
        )
        if series:
            values = [point.y for curve in series for point in curve.points]
            wide = min(values) > 0 and 50 < max(values) / min(values) < 1e7
            seed = f", seed {run.seed}" if len(setting.runs) > 1 else ""
            name, caption = f"terms-{setting.slot}", f"Terms of the loss before weighting{seed}."
            axis = Axis("value", log=wide)
            charts.append(Chart(name, setting.label, caption, STEP, axis, series, own_legend=True))
    return charts


def _charts(group: Group, texts: Texts) -> list[Chart]:
    """A chart of each name that any run has logged, one line per setting."""
    charts = []
    for name, (title, caption, percent) in texts.items():
        curves = ((setting, _curve(setting, name)) for setting in group.settings)
        series = tuple(Series(each.label, each.slot, points) for each, points in curves if points)
        if series:
            axis = Axis(title.lower(), percent=percent)
            charts.append(Chart(name.replace("_", "-"), title, caption, STEP, axis, series))
    return charts


def _curve(setting: Setting, name: str) -> tuple[Point, ...]:
    """The curve of one run, or mean and range of several seeds at the steps that all of them have."""
    kind = "held_out" if name in HELD_OUT else "train"
    curves = [curve for run in setting.runs if (curve := run.curve(kind, name))]
    if len(curves) < 2:
        return tuple(starmap(Point, curves[0].items())) if curves else ()
    shared = [step for step in curves[0] if all(step in curve for curve in curves)]
    values = ((step, [curve[step] for curve in curves]) for step in shared)
    return tuple(Point(step, fmean(each), min(each), max(each)) for step, each in values)
