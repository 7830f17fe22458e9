"""What a search leaves: the chosen mixture in its run, tested once on untouched images, and a page with every trial."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracer.api.load import call
from tracer.core.command_line import command_line
from tracer.core.errors import UserError
from tracer.core.metrics.intervals import Interval
from tracer.evaluation.verdict import Verdict, plus_minus
from tracer.fitting.choice import PRETRAINED, Choice, Point
from tracer.fitting.final_test import Test
from tracer.fitting.search import Search
from tracer.fitting.trial import read_state, write_state
from tracer.report.chart import BASE, Axis, Chart, Series
from tracer.report.chart import Point as ChartPoint
from tracer.report.commands import Command, training
from tracer.report.page import Summary, write_report
from tracer.report.run_data import read_run
from tracer.runs.files import CHOSEN
from tracer.runs.run import Run
from tracer.storage.atomic import write_json, write_link
from tracer.storage.lock import lock

FILE = "fit.json"
BEST = "best"
PAGE = "report.html"
TESTED = "tested"  # answers to the test, of the pretrained model and of the choice


@dataclass(frozen=True)
class Fitted:
    """The chosen model: a run that stands for the mixture, and how it did on images that nothing was chosen by."""

    run: Run
    alpha: float  # 1: the finetuned weights, 0: the pretrained model
    reason: str
    # Against the pretrained model, on the test images and the other half of the retained ones.
    verdict: Verdict
    sentence: str
    commands: tuple[str, ...]  # that make it again without the search
    folder: Path
    keep: float | None = None  # share that it had to keep
    warning: str = ""  # about test images that the model was trained on before
    again: str = ""  # how to search for longer

    @property
    def pretrained(self) -> bool:
        """Whether nothing was better than the pretrained model."""
        return self.alpha == 0

    @property
    def next(self) -> str:
        """What to do now: the command that exports it, or one that searches for longer where nothing was better."""
        if self.pretrained:
            return self.again
        return command_line("export", self.folder / BEST, "--out", "my-model")

    @property
    def call(self) -> str:
        """The Python that names a photograph with it."""
        return call(self.folder / BEST, self.run.task().classes)

    @property
    def advice(self) -> str:
        """What may help where nothing was better; empty if something was."""
        if not self.pretrained:
            return ""
        other = " or" if self.keep is None else ", a lower --keep, more images in --retain or"
        return f"More labelled images{other} a larger --budget may help."

    def __str__(self) -> str:
        return self.sentence


def finish(search: Search) -> Fitted:
    """Choose, keep the mixture, test it once, and write `fit.json`, the link `best` and the page."""
    with lock(search.folder / ".locks" / FILE, wait=True):  # of two processes, one looks at the test images
        choice, known = search.best(), _earlier(search.folder)
        name, alpha = choice.point.trial, choice.point.alpha
        if name == PRETRAINED:
            name = next(each.name for each in search.trials.values() if each.candidate.method == "zeroshot")
        run = Run(search.trials[name].run.folder)  # its result, whatever was chosen of it before
        test = Test.of(run, search.parts, search.folder / TESTED)
        weights = (
            f"wise-{alpha:g}" if 0 < alpha < 1 else "result"
        )  # of the pretrained model's run: that model
        measured, looks = test.read(weights), known.get("looks", 0)
        if measured is None:
            looks += 1
            if differs := test.differs(weights):
                search.tell(
                    f"The test has other {differs} than when this choice was tested before: look {looks}."
                )
            search.tell(f"Testing the choice on {len(search.parts.test)} images.")
            run, measured = test.carry_out(weights, alpha, search.machine.device)
        # The same model may be chosen for another reason, out of more trials.
        known = {"weights": weights, **measured, "looks": looks, **_story(search, choice, run)}
        known["sentence"] = _sentence(search, choice.point, known)
        write_state(search.folder / FILE, known)
        for trial in search.all_trials():  # what an earlier search chose stands for itself again
            if trial.folder != run.folder:
                (trial.folder / CHOSEN).unlink(missing_ok=True)
        told = {"weights": weights, "by": run.by(weights), "sentence": known["sentence"]}
        write_json(run.folder / CHOSEN, told)
        run.weights = weights
        write_link(search.folder / BEST, run.folder.relative_to(search.folder))
        fitted = Fitted(
            run,
            alpha,
            choice.reason,
            Verdict.from_json(known),
            known["sentence"],
            tuple(known["commands"]),
            search.folder,
            search.keep,
            search.warning,
            search.again,
        )
        steps = tuple(Command("the same model without the search", line) for line in fitted.commands)
        export = () if fitted.pretrained else (Command("a model that open_clip loads", fitted.next),)
        summary = Summary(fitted.sentence, (*export, *steps), chart(search, choice.point))
        folders = [trial.folder for trial in search.all_trials()]
        write_report(folders, search.folder / PAGE, summary=summary)
        return fitted


def chart(search: Search, chosen: Point) -> Chart:
    """Held-out accuracy against the share kept, along the mixtures of every trial."""
    before = search.before
    methods = list(dict.fromkeys(trial.candidate.method for trial in search.all_trials()))
    series = []
    for trial in search.all_trials():
        path = search.paths[trial.name]
        if not path:
            continue
        points = tuple(
            ChartPoint(p.retention(before), p.accuracy, note=f"{trial}, α = {p.alpha:g}")
            for p in (before, *path)
        )
        slot = methods.index(trial.candidate.method)
        series.append(Series(f"{trial.candidate}, path", slot, points, guide=True))
        series.append(Series(str(trial.candidate), slot, points[-1:], mark="points", named=False))
    series.append(Series(PRETRAINED, BASE, (ChartPoint(1.0, before.accuracy),), mark="points"))
    if chosen.trial != PRETRAINED:
        trial = search.trials[chosen.trial]
        label, slot = f"chosen: {search.describe(chosen)}", methods.index(trial.candidate.method)
        point = ChartPoint(chosen.retention(before), chosen.accuracy, size=2.0)
        series.append(Series(label, slot, (point,), mark="points"))
    images = f"{len(before.hits)} held-out images"
    return Chart(
        name="fit-frontier",
        title="Learned against kept",
        caption=f"Every trial, on {images}: points are finetuned weights, thin lines their mixtures with the "
        "pretrained ones. Up: better on the task. Right: keeps more of what the pretrained model could do.",
        x=Axis(f"share kept: {', '.join(before.kept)}", percent=True),
        y=Axis("held-out accuracy", percent=True),
        series=tuple(series),
        labelled=True,
    )


def _story(search: Search, choice: Choice, run: Run) -> dict[str, Any]:
    """What was chosen and why, and the commands that make it again; none for the pretrained model."""
    commands = [f"{training(read_run(run.folder))} --out FOLDER"] if choice.point.alpha else []
    if 0 < choice.point.alpha < 1:
        commands.append(f"tracer merge FOLDER --wise {choice.point.alpha:g}")
    return {
        "run": run.folder.name,
        "trial": choice.point.trial,
        "alpha": choice.point.alpha,
        "reason": choice.reason,
        "warning": search.warning,
        "keep": search.keep,
        "trials": len(search.trials),
        "held_out": {
            "accuracy": choice.point.accuracy,
            "before": search.before.accuracy,
            "retention": choice.point.retention(search.before),
            "n": len(search.before.hits),
        },
        "commands": commands,
    }


def _sentence(search: Search, chosen: Point, known: dict[str, Any]) -> str:
    """The closing sentence: what was chosen, and what it gained and lost on the test images; a warning, if any."""
    images, warning = "untouched test images", ""
    if search.warning:
        images, warning = "test images", f" Warning: {search.warning}."
    verdict = Verdict.from_json(known)
    if not chosen.alpha:
        right = f"It gets {plus_minus(verdict.task.after)} of {verdict.task.n} {images}."
        return f"The pretrained model stays as it is: {known['reason']}. {right}{warning}"
    mixed = "" if chosen.alpha == 1 else f", mixed with the pretrained weights at α = {chosen.alpha:g}"
    label = f"{search.trials[chosen.trial]}{mixed}, out of {len(search.trials)} trials"
    kept = ""
    if not verdict.retained:
        kept = f" It gives {plus_minus(Interval(*known['agreement']))} of them the pretrained model's ImageNet name."
    return f"Chosen: {label}. {verdict.sentence(images)}{kept}{warning}"


def _earlier(folder: Path) -> dict[str, Any]:
    """The result of an earlier session; empty if there is none. It counts the looks at the test images."""
    known = read_state(folder / FILE)
    if not known and (folder / FILE).exists():
        raise UserError(
            f"{folder / FILE} is damaged: restore it, or delete it to look at the test images once more"
        )
    return known
