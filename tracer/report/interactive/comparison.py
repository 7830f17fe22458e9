"""The pretrained and the finetuned model of a run, side by side on single images and texts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import torch
from PIL import Image
from torch import Tensor

from tracer.core.errors import UserError
from tracer.data.examples import Examples
from tracer.evaluation.measured import evenly_spaced
from tracer.evaluation.predict import Scorer
from tracer.parallel import World
from tracer.report.closer import Gallery, chosen_sets, gallery
from tracer.report.images import own_images
from tracer.report.paired import Paired, paired_sets
from tracer.report.run_data import read_run
from tracer.runs.run import Run

MOST_IMAGES = 1000  # of the run's own that are searched: both models embed each of them once
MOST_NAMES = 200
PART = 32  # images embedded at a time


class Row(NamedTuple):
    """A name with its probability under both models."""

    name: str
    before: float
    after: float


class Comparison:
    """Both models of a finished run, and its held-out images (`examples`; of many, evenly spaced ones)."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.title = f"{run.folder.name} ({run.experiment.method})"
        self.classes: tuple[str, ...] = tuple(run.description["classes"])
        held_out, _ = own_images(run)
        self.examples: Examples = held_out.take(evenly_spaced(len(held_out), MOST_IMAGES))
        self.templates = run.task("result").templates
        models = [run.student(name).eval() for name in ("pretrained", run.weights)]
        self.scorers = [Scorer(model, World("cpu", "fp32"), self.classes) for model in models]

    def image(self, index: int) -> Image.Image:
        """A held-out image."""
        return self.examples.images[index]

    @torch.no_grad()
    def scores(self, image: Image.Image, names: Sequence[str]) -> list[Row]:
        """The probability of each name under both models, by the second one's.

        The names are put into the run's prompts. A model with a trained head uses it for the run's own classes, as
        the evaluation does.
        """
        names = list(dict.fromkeys(name.strip() for name in names if name.strip()))
        if not 2 <= len(names) <= MOST_NAMES:
            raise UserError(f"give between 2 and {MOST_NAMES} different names, not {len(names)}")
        shares = []
        for scorer in self.scorers:
            features = scorer.student.encode_image(scorer.student.preprocess(image))
            logits = scorer.classifier(tuple(names), self.templates)(features)
            shares.append(logits[0].softmax(dim=0).tolist())
        return sorted(map(Row, names, *shares), key=lambda row: -row.after)

    @torch.no_grad()
    def search(self, text: str, count: int = 8) -> tuple[list[int], list[int]]:
        """The held-out images that each model finds nearest to a text, the nearest first."""
        if not text.strip():
            raise UserError("give a text to search for")
        nearest = []
        for scorer, images in zip(self.scorers, self._embedded, strict=True):
            student = scorer.student
            similarity = images @ student.embed_text(student.tokenise(text.strip()))[0]
            nearest.append(similarity.topk(min(count, len(similarity))).indices.tolist())
        return nearest[0], nearest[1]

    def changed(self, most: int = 24) -> list[tuple[Paired, Gallery]]:
        """Images that were learned and forgotten, on the task and on what should be retained, as in the report.

        A UserError where no predictions of both models are kept.
        """
        data = read_run(self.run.folder)
        sets, _ = chosen_sets([*paired_sets(data)])
        if not sets:
            raise UserError(f"{self.run.folder} has no predictions of both models on the same images")
        return [(each, gallery(data, each, most)) for each in sets]

    @cached_property
    def _embedded(self) -> tuple[Tensor, ...]:
        """Unit-length embeddings of the held-out images by each model; each image is decoded once."""
        parts: tuple[list[Tensor], ...] = ([], [])
        for start in range(0, len(self.examples), PART):
            images = [self.image(i) for i in range(start, min(start + PART, len(self.examples)))]
            for scorer, embeddings in zip(self.scorers, parts, strict=True):
                embeddings.append(scorer.student.embed_image(scorer.student.preprocess(images)))
        return tuple(torch.cat(each) for each in parts)
