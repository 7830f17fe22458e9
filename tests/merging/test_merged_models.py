"""Merging real models: what is learned, what is estimated, what is differentiated."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from closeness import same
from torch import nn
from torch.nn.functional import cross_entropy

from tracer.core.batch import Batch
from tracer.merging.evaluator import Evaluator
from tracer.merging.fisher import fisher_information
from tracer.merging.tpgm import class_logits, first_radii, learn_radii, projected
from tracer.models.student import Head, Student
from tracer.models.trainable import HeadOnly, ImageTower


class Small(nn.Module):
    """An image tower of one linear map and a BatchNorm, dressed as open_clip's."""

    def __init__(self) -> None:
        super().__init__()
        self.visual = nn.Sequential(nn.Flatten(), nn.Linear(12, 5), nn.BatchNorm1d(5))
        self.logit_scale = nn.Parameter(torch.zeros(()))

    def encode_image(self, image: torch.Tensor) -> torch.Tensor:
        return self.visual(image)


def small() -> Student:
    """A student in float64 without a text tower and with a head of three classes."""
    torch.manual_seed(0)
    made = Student.__new__(Student)
    nn.Module.__init__(made)
    made.clip, made.head, made.name, made.frozen_statistics = Small(), Head(torch.randn(3, 5)), "small", False
    made.register_buffer("mean", torch.zeros(3, 1, 1))
    made.register_buffer("std", torch.ones(3, 1, 1))
    return made.double()


def images(count: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(count, 3, 2, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def reestimated(student: Student, batches: list[torch.Tensor], moved: bool = True) -> dict[str, torch.Tensor]:
    """The weights of a student with the statistics of these batches, of two runs.

    If they `moved`, those of the last run are not the pretrained ones.
    """
    weights = {name: tensor.clone() for name, tensor in student.state_dict().items()}
    end = {name: tensor + ("running_mean" in name and moved) for name, tensor in weights.items()}
    evaluator: Any = SimpleNamespace(
        group=SimpleNamespace(student=student, start=weights, ends={"1": weights, "2": end}),
        world=SimpleNamespace(place=lambda module: module),
        _images=lambda: batches,
    )
    return Evaluator.with_batchnorm_statistics(evaluator, weights)


def test_statistics_are_those_of_the_images() -> None:
    student, batches = small(), [images(8, seed) for seed in range(4)]
    reestimated(student, batches)
    linear, norm = student.clip.visual[1], student.clip.visual[2]
    outputs = [linear(batch.flatten(1)).detach().numpy() for batch in batches]
    same(norm.running_mean, np.mean([o.mean(axis=0) for o in outputs], axis=0), sums=50)
    same(norm.running_var, np.mean([o.var(axis=0, ddof=1) for o in outputs], axis=0), sums=50)
    assert not student.training
    assert norm.momentum == 0.1


def test_statistics_that_no_run_moved_are_not_estimated_anew() -> None:
    """Mixed weights whose ends have the pretrained statistics have them too."""
    student, name = small(), "clip.visual.2.running_mean"
    before = student.state_dict()[name].clone()
    assert torch.equal(reestimated(student, [images(8)], moved=False)[name], before)
    assert not torch.equal(reestimated(student, [images(8)], moved=True)[name], before)


def test_a_transformer_has_no_statistics(shared_student) -> None:
    """And no image is read for any."""
    unread: Any = None
    before = shared_student.state_dict()
    after = reestimated(shared_student, unread)
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items())


def test_still_norms_stay_in_eval_mode_while_the_rest_trains() -> None:
    student = small()
    for tune, moving in ((HeadOnly(), False), (ImageTower(), True)):
        tune(student)
        student.train()
        assert student.training
        assert student.clip.visual[2].training is moving


def test_fisher_information_is_the_mean_square_of_the_score() -> None:
    student, seen = small(), images(6)
    student.eval()
    found = fisher_information(student, seen, torch.zeros(3, 1, dtype=torch.int64), seed=4)
    generator, head = torch.Generator().manual_seed(4), student.head
    assert head is not None
    expected = np.zeros((3, 5))
    with torch.no_grad():
        for image in seen:
            feature = student.encode_image(image[None])
            unit = (feature / feature.norm()).numpy()[0]
            p = head(feature).softmax(dim=1)
            label = int(torch.multinomial(p[0], 1, generator=generator))
            score = (np.eye(3)[label] - p.numpy()[0])[:, None] * unit[None]  # ∂ log p_y / ∂W = (e_y − p) fᵀ
            expected += score**2 / len(seen)
    same(found["head.weight"], expected, sums=30)


def test_weights_can_be_tried_without_being_put_in_place() -> None:
    student, batch = small().eval(), Batch(images(4))
    other = {name: tensor + 1 for name, tensor in student.state_dict().items() if tensor.is_floating_point()}
    before = class_logits(student, batch)
    tried = class_logits(student, batch, other)
    assert not torch.allclose(before, tried)
    assert torch.equal(class_logits(student, batch), before)


def trained() -> tuple[Student, dict[str, torch.Tensor], dict[str, torch.Tensor], Batch]:
    """A start, an end that went astray in its linear map, and the start's own labels to judge by."""
    student = small().eval()
    start = {name: tensor.clone() for name, tensor in student.state_dict().items()}
    batch = Batch(images(32))
    label = class_logits(student, batch).argmax(dim=1)
    noise = torch.Generator().manual_seed(1)
    end = {name: tensor.clone() for name, tensor in start.items()}
    name = "clip.visual.1.weight"
    end[name] = end[name] + torch.randn(end[name].shape, dtype=torch.float64, generator=noise)
    return student, start, end, batch._replace(label=label)


def test_tpgm_draws_a_stray_tensor_back() -> None:
    student, start, end, batch = trained()
    name = "clip.visual.1.weight"
    merged, radii = learn_radii(start, end, student, [batch] * 300, norm="whole")
    assert set(radii.radius) == {name}
    assert radii.radius[name] < first_radii(start, end, "whole").radius[name] / 2
    assert (merged[name] - start[name]).norm() < (end[name] - start[name]).norm() / 4


def test_tpgm_lets_a_helpful_tensor_go_farther() -> None:
    """Judged by the end's own labels, the tensor leaves its first radius and the loss falls."""
    student, start, end, batch = trained()
    label = class_logits(student, batch, end).argmax(dim=1)
    merged, radii = learn_radii(start, end, student, [batch._replace(label=label)] * 600, norm="whole")
    first = first_radii(start, end, "whole").radius
    (name,) = radii.radius
    assert first[name] < radii.radius[name] <= radii.farthest[name]
    losses = [
        float(cross_entropy(class_logits(student, batch, weights), label))
        for weights in (projected(start, end, first, "whole"), merged)
    ]
    assert losses[1] < losses[0]


def test_tpgm_of_a_model_that_did_not_move_is_that_model() -> None:
    student, start, _, batch = trained()
    merged, radii = learn_radii(start, start, student, [batch])
    assert not radii.radius
    assert all(torch.equal(merged[name], start[name]) for name in start)
