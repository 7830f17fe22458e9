"""Scores of merged weights: accuracy on held-out data, and retention of what the pretrained model could do."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tracer.core.errors import UserError
from tracer.core.metrics import Interval, agreement, wilson_interval
from tracer.core.metrics.intervals import ratio_bound
from tracer.core.weights import Weights
from tracer.data.examples import Examples
from tracer.data.transforms import Transform
from tracer.evaluation.measured import compared_indices, held_out_hits, imagenet_logits
from tracer.evaluation.predict import Scorer
from tracer.evaluation.verdict import Change, Verdict
from tracer.merging.run_group import RunGroup
from tracer.models.running_statistics import estimate, moved
from tracer.models.student import initialise_from
from tracer.parallel import World
from tracer.runs.plan import prompts_for

STATISTICS_IMAGES = 2048  # training images for new BatchNorm statistics
BATCH = 128


class Scores(NamedTuple):
    """Hits on the held-out images and on each retained data set, and agreement with the pretrained model."""

    hits: list[bool]
    retained_hits: dict[str, list[bool]]
    agreement: float = math.nan  # share of images that get the pretrained model's ImageNet name
    optimism: float = 0.0  # how much too high the accuracy is expected to be: these images chose the weights

    @property
    def accuracy(self) -> float:
        return sum(self.hits) / len(self.hits)

    @property
    def retained(self) -> dict[str, float]:
        """The accuracy on each retained data set."""
        return {name: sum(hits) / len(hits) for name, hits in self.retained_hits.items()}

    @property
    def interval(self) -> Interval:
        """The accuracy less its optimism, with its 95 % interval."""
        return wilson_interval(max(0.0, self.accuracy - self.optimism), len(self.hits))

    def to_json(self) -> dict[str, Any]:
        """The accuracies with their counts and 95 % intervals; that of the task is less its optimism."""
        counts = {name: len(hits) for name, hits in self.retained_hits.items()}
        return {
            "accuracy": self.accuracy,
            "optimism": self.optimism,
            "interval": list(self.interval),
            "n": len(self.hits),
            "retained": self.retained,
            "retained_intervals": {
                name: list(wilson_interval(share, counts[name])) for name, share in self.retained.items()
            },
            "retained_n": counts,
            **({} if math.isnan(self.agreement) else {"agreement": self.agreement}),
        }

    def verdict(self, before: Scores) -> Verdict:
        """The change against other scores on the same images."""
        retained = {
            name: Change.of(hits, self.retained_hits[name]) for name, hits in before.retained_hits.items()
        }
        task = Change.of(before.hits, self.hits)
        if self.hits != before.hits:  # the difference of a model with itself is 0
            luck = self.accuracy - self.interval.value
            difference = task.difference.less(self.optimism)
            task = task._replace(after=self.interval, difference=difference, luck=luck)
        return Verdict(task, retained)

    def retention(self, before: Scores) -> float:
        """The lowest ratio of accuracy to `before` over the retained data sets; the agreement if there are none."""
        if not self.retained:
            return self.agreement
        return min(self.retained[name] / start if start else 1.0 for name, start in before.retained.items())

    def retention_bound(self, before: Scores) -> float:
        """A lower bound of that ratio, with 95 %; 1 for the answers of `before` themselves."""
        if self is before or (self.hits == before.hits and self.retained_hits == before.retained_hits):
            return 1.0
        if not self.retained:
            return wilson_interval(self.agreement, len(compared_indices(len(self.hits)))).low
        quantile = NormalDist().inv_cdf(0.95)
        return min(
            ratio_bound(hits, self.retained_hits[name], quantile)
            for name, hits in before.retained_hits.items()
        )


class Evaluator:
    """Scores weights in the same way as the result of a run; without `compare`, the agreement is left out as NaN."""

    def __init__(
        self,
        group: RunGroup,
        world: World,
        held_out: Examples | None = None,
        retain: Sequence[Examples] = (),
        *,
        compare: bool = True,
    ) -> None:
        self.group, self.world, self.compare = group, world, compare
        self.held_out = group.plan.held_out if held_out is None else held_out
        self.retain = tuple(retain) or group.plan.retain
        if not len(self.held_out):
            run, data = group.runs[0].folder, group.plan.experiment.data
            raise UserError(f"{run} holds nothing out of {data} to choose by: give --held-out")
        world.place(group.student)
        self._pretrained: Tensor | None = None
        self.before = self(group.start)

    def __call__(self, weights: Weights) -> Scores:
        scorer, plan = self.scorer(weights), self.group.plan
        held_out = scorer.embed(self.held_out)
        hits = held_out_hits(scorer, held_out, plan.templates)
        retained = {data.name: scorer.predict(data, prompts_for(data)).hits for data in self.retain}
        if not self.compare:
            return Scores(hits, retained)
        logits = imagenet_logits(scorer, held_out)
        if self._pretrained is None:
            self._pretrained = logits
        return Scores(hits, retained, agreement(self._pretrained, logits))

    def scorer(self, weights: Weights) -> Scorer:
        """A scorer of the student with these weights."""
        student = self.group.student
        initialise_from(student, weights)
        self.world.place(student)
        return Scorer(student, self.world, self.group.plan.train.classes)

    def with_batchnorm_statistics(self, weights: Weights) -> Weights:
        """The weights with BatchNorm statistics estimated for them, which cannot be averaged.

        Unchanged if the model has none, or if all runs have the pretrained ones, as by default, with an adapter, or
        with frozen blocks: mixed weights then have them too.
        """
        student, ends = self.group.student, self.group.ends.values()
        if not any(moved(student, self.group.start, end) for end in ends):
            return weights
        initialise_from(student, weights)
        self.world.place(student).eval()
        estimate(student.image_tower, (student.pixels(batch) for batch in self._images()))
        return {name: tensor.clone() for name, tensor in student.state_dict().items()}

    def _images(self) -> Iterator[Tensor]:
        """Training images in batches of about equal size, because each batch counts equally in the statistics."""
        examples = self.group.plan.train
        transform = Transform(self.group.student.preprocess_cfg)
        count = min(STATISTICS_IMAGES, len(examples))
        indices = torch.linspace(0, len(examples) - 1, count).long().unique()
        for part in indices.tensor_split(math.ceil(len(indices) / BATCH)):
            yield transform.batch(examples.images, part.tolist()).to(self.world.device)
