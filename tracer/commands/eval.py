"""Measure a run or a model on data: `tracer eval RUN|MODEL --data …`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from tracer.console import console, show_table
from tracer.data.scan import scan
from tracer.data.sources import load as load_data
from tracer.errors import UserError
from tracer.evaluate import predict
from tracer.metrics import METRICS
from tracer.model import Student, load
from tracer.parallel import World
from tracer.plan import prompts_for
from tracer.run import DESCRIPTION, Run
from tracer.zoo import pretrained_tag


def main(arguments: list[str]) -> int:
    def measure(
        model: Annotated[str, tyro.conf.Positional],
        data: str,
        pretrained: str = "auto",
        weights: str = "result",
        templates: str | None = None,
        classes: str | None = None,
        device: str = "auto",
    ) -> int:
        """Accuracy and calibration of a run, an exported folder or a model of open_clip.

        Args:
            model: a run's directory, a folder with an export, or a model's name.
            data: what to measure on: a folder of images, a table, shards, or an embedded name.
            pretrained: weights, where MODEL is a name.
            weights: result, student, teacher or pretrained, where MODEL is a run.
            templates: prompts: openai, simple, name, or a file.
            classes: file with the class names.
            device: auto, cpu, cuda or mps.
        """
        world = World(device)
        student, trained_on = subject(model, pretrained, weights)
        world.place(student)
        examples = scan(load_data(data, classes=classes, split="test"))
        if not examples.labelled:
            raise UserError(f"{data} has no labels to measure against")
        head = student.head is not None and trained_on == examples.classes
        found = predict(student, examples, prompts_for(examples, templates), world, head=head)
        rows = [(name, f"{metric(found.logits, found.label):.4f}") for name, metric in METRICS.items()]
        show_table(f"{model} on {examples.name}, {len(examples)} images", ("measure", "value"), rows)
        console.print("by the trained head" if head else "by prompts through the text tower", highlight=False)
        return 0

    return tyro.cli(measure, args=arguments, prog="tracer eval")


def subject(model: str, pretrained: str, weights: str) -> tuple[Student, tuple[str, ...]]:
    """What is to be measured, and the classes its head knows if it has one."""
    if (Path(model) / DESCRIPTION).is_file():
        run = Run.open(Path(model))
        return run.student(weights), tuple(run.description["classes"])
    return load(model, pretrained_tag(model, pretrained)), ()
