"""What happened while training: losses, held-out accuracy, and whether the teacher still taught."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

from tracer.report.account import Account
from tracer.report.chart import Axis, Chart, Series
from tracer.report.comparison import Group, Setting

STEP = Axis("step", whole=True)

# name in the log: (title, what it says, a share?)
TEACHER: dict[str, tuple[str, str, bool]] = {
    "kl": ("Teacher–student divergence", "KL in nats. At zero the teacher has nothing more to say.", False),
    "agreement": ("Agreement", "Share of images for which both choose the same caption of the batch.", True),
    "top5_overlap": (
        "Top-5 overlap",
        "Share of the teacher's five best captions that the student has too.",
        True,
    ),
    "teacher_confidence": ("Teacher's confidence", "Mean of its largest probability over the batch.", True),
    "teacher_entropy": (
        "Teacher's entropy",
        "In nats; the logarithm of the batch size is complete doubt.",
        False,
    ),
    "student_entropy": ("Student's entropy", "In nats, on the same batches.", False),
    "teacher_pair": ("True pair, teacher", "Probability the teacher gives to an image's own caption.", True),
    "student_pair": ("True pair, student", "Probability the student gives to an image's own caption.", True),
    "teacher_age": ("Mean age of the teacher", "How far back its iterates lie on average, in steps.", False),
}
GENERAL = ("loss", "lr", "scale")


def learning(group: Group, prefix: str) -> list[Chart]:
    """Held-out accuracy, the loss and the temperature."""
    wanted: list[tuple[str, str, str, str, bool]] = [
        ("held_out", "accuracy", "Held-out accuracy", "Measured ten times in a run.", True),
        ("train", "loss", "Loss", "Sum of all terms; methods with other terms have other heights.", False),
        ("train", "scale", "Inverse temperature", "exp(logit_scale), which CLIP keeps below 100.", False),
    ]
    return [chart for told in wanted if (chart := _drawn(group, prefix, *told))]


def teaching(group: Group, prefix: str) -> list[Chart]:
    """The probes of teacher and student; empty where no run has a teacher."""
    gap = ("Distance in weights", "‖student − teacher‖ over all parameters.", False)
    charts = [_drawn(group, prefix, "held_out", "weight_gap", *gap)]
    charts += [_drawn(group, prefix, "train", name, *told) for name, told in TEACHER.items()]
    return [chart for chart in charts if chart is not None]


def terms(group: Group, prefix: str) -> list[Chart]:
    """The parts of the loss, one chart a setting, at their own size before weighting."""
    charts = []
    for setting in group.settings:
        run = setting.runs[0]
        parts = [name for name in run.names("train") if name not in TEACHER and name not in GENERAL]
        series = [
            Series(name.replace("_", " "), slot, *_tuples(run.curve("train", name)))
            for slot, name in enumerate(parts)
        ]
        drawn = tuple(part for part in series if part.x)
        if drawn:
            seed = f", seed {run.seed}" if len(setting.runs) > 1 else ""
            caption = f"Each term of the loss before its weight{seed}."
            name = f"{prefix}-terms-{setting.slot}"
            axis = Axis("value", log=_spans([value for part in drawn for value in part.y]))
            charts.append(Chart(name, setting.label, caption, STEP, axis, drawn, own_legend=True))
    return charts


def _drawn(
    group: Group, prefix: str, kind: str, name: str, title: str, caption: str, percent: bool
) -> Chart | None:
    series = [_series(setting, lambda run: run.curve(kind, name)) for setting in group.settings]
    drawn = tuple(part for part in series if part is not None)
    if not drawn:
        return None
    axis = Axis(title.lower(), percent=percent)
    return Chart(f"{prefix}-{name.replace('_', '-')}", title, caption, STEP, axis, drawn)


def _series(setting: Setting, read: Callable[[Account], tuple[list[float], list[float]]]) -> Series | None:
    """One run as it is; several seeds as mean and range, at the steps that all of them have reached."""
    curves = [dict(zip(*read(run), strict=True)) for run in setting.runs]
    curves = [curve for curve in curves if curve]
    if not curves:
        return None
    if len(curves) == 1:
        return Series(setting.label, setting.slot, tuple(curves[0]), tuple(curves[0].values()))
    steps = [step for step in curves[0] if all(step in curve for curve in curves)]
    at: list[Sequence[float]] = [[curve[step] for curve in curves] for step in steps]
    if not steps:
        return None
    return Series(
        setting.label,
        setting.slot,
        tuple(steps),
        tuple(fmean(values) for values in at),
        tuple(min(values) for values in at),
        tuple(max(values) for values in at),
    )


def _spans(values: Sequence[float]) -> bool:
    """Whether values are so far apart that only a logarithmic axis shows them all."""
    return min(values) > 0 and 50 < max(values) / min(values) < 1e7


def _tuples(curve: tuple[list[float], list[float]]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return tuple(curve[0]), tuple(curve[1])
