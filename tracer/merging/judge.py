"""What a merge is worth: the task on held-out data, and what is left of what the model knew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from tracer.core.errors import UserError
from tracer.core.metrics import agreement
from tracer.core.weights import Weights
from tracer.data.examples import Examples
from tracer.data.transforms import Transform
from tracer.evaluation.held_out import held_out_accuracy
from tracer.evaluation.predict import Scorer
from tracer.evaluation.summary import view
from tracer.merging.family import Family
from tracer.merging.statistics import has_statistics, reestimate
from tracer.models.student import initialise_from
from tracer.parallel import World
from tracer.runs.plan import prompts_for

SEEN = 2048  # training images on which the statistics of BatchNorm are estimated anew
BATCH = 128


class Verdict(NamedTuple):
    """Accuracy on the task, on each retained data set, and agreement with the pretrained model over ImageNet."""

    accuracy: float
    retained: dict[str, float]
    agreement: float

    def retention(self, before: Verdict) -> float:
        """The share that is left of the retained data set that lost most; without any, the agreement."""
        if not self.retained:
            return self.agreement
        return min(1.0 if not then else self.retained[name] / then for name, then in before.retained.items())


class Judge:
    """Scores weights by the same path as a run's own result."""

    def __init__(
        self, family: Family, world: World, held_out: Examples | None = None, retain: Sequence[Examples] = ()
    ) -> None:
        self.family, self.world = family, world
        self.held_out = family.plan.held_out if held_out is None else held_out
        self.retain = tuple(retain) or family.plan.retain
        if not len(self.held_out):
            run, data = family.runs[0].folder, family.plan.experiment.data
            raise UserError(f"{run} holds nothing out of {data} to choose by: give --held-out")
        world.place(family.student)
        self._pretrained: Tensor | None = None
        self.before = self(family.start)

    def __call__(self, weights: Weights) -> Verdict:
        scorer, plan = self.scorer(weights), self.family.plan
        held_out = scorer.embed(self.held_out)
        seen = view(scorer, held_out)
        if self._pretrained is None:
            self._pretrained = seen
        return Verdict(
            held_out_accuracy(scorer, held_out, plan.templates),
            {data.name: scorer.predict(data, prompts_for(data)).accuracy for data in self.retain},
            agreement(self._pretrained, seen),
        )

    def scorer(self, weights: Weights) -> Scorer:
        """The student with these weights, ready to predict."""
        student = self.family.student
        initialise_from(student, weights)
        self.world.place(student)
        return Scorer(student, self.world, self.family.plan.train.classes)

    def settled(self, weights: Weights) -> Weights:
        """The weights with statistics of their own, where the model has BatchNorm; else as they are."""
        student = self.family.student
        if not has_statistics(student):
            return weights
        initialise_from(student, weights)
        reestimate(self.world.place(student), self._images())  # pyright: ignore[reportArgumentType]
        return {name: tensor.clone() for name, tensor in student.state_dict().items()}

    def _images(self) -> Iterator[Tensor]:
        examples = self.family.plan.train
        transform = Transform(self.family.student.preprocess)
        count = min(SEEN, len(examples))
        some = torch.linspace(0, len(examples) - 1, count).long().unique().tolist()
        for at in range(0, len(some), BATCH):
            yield transform.batch(examples.images, some[at : at + BATCH]).to(self.world.device)
