"""The closed forms and the decomposition hold in feature space: random features and a network's tangent."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy import ndarray
from torch import nn
from torch.func import functional_call, jvp

from studies.theory import descent, features, flow, solve
from studies.theory.distance import relative_distance
from studies.theory.problem import Problem, contrastive_target
from tracer.core.kernels import Beta
from tracer.core.teachers import WMA


@pytest.fixture
def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2)).double()


def drawn(count: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(count, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def contrastive_goal(outputs: ndarray, seed: int = 2) -> ndarray:
    """A contrastive target for these inputs, texts being random."""
    rng = np.random.default_rng(seed)
    return contrastive_target(rng.normal(size=(4, len(outputs))), rng.normal(size=(2, 4))).T


@pytest.mark.parametrize("width", [5, 60])
@pytest.mark.parametrize("kind", [features.rectified, features.fourier])
def test_random_features_split_as_inputs_do(kind: type, width: int) -> None:
    """Fewer features than samples, and more: outside their span nothing moves, inside two solutions mix."""
    rng = np.random.default_rng(0)
    phi = kind(width, 6, rng)(rng.normal(size=(6, 20)))
    target = contrastive_target(rng.normal(size=(4, 20)), rng.normal(size=(3, 4)))
    problem = Problem(phi, target, rng.normal(size=(3, width)))
    inverse = np.linalg.pinv(phi, rtol=1e-10)
    projected = (problem.start @ phi) @ inverse
    for strength in (0.1, 3.0):
        expected = problem.start + (target @ inverse - projected) / (1 + strength)
        assert relative_distance(solve.distilled(problem, strength), expected) < 1e-9
        for solution in (solve.direct(problem), solve.l2(problem, strength), expected):
            complement = problem.task.outside(problem.start)
            assert (
                relative_distance(
                    problem.task.outside(solution), complement, scale=float(np.linalg.norm(solution))
                )
                < 1e-9
            )


def test_random_cosines_approach_the_gaussian_kernel() -> None:
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(3, 5))
    phi = features.fourier(40_000, 3, rng, bandwidth=2.0)(inputs)
    squared = ((inputs[:, :, None] - inputs[:, None, :]) ** 2).sum(axis=0)
    np.testing.assert_allclose(phi.T @ phi, np.exp(-squared / 8), atol=0.02)


def test_jacobian_is_the_network_to_first_order(network: nn.Module) -> None:
    inputs = drawn(4)
    tangent = features.tangent(network, inputs)
    parameters = {name: value.detach() for name, value in network.named_parameters()}
    change = {name: torch.randn_like(value) for name, value in parameters.items()}
    outputs, slope, *_ = jvp(lambda p: functional_call(network, p, (inputs,)), (parameters,), (change,))
    update = torch.cat([value.flatten() for value in change.values()])[None].numpy()
    np.testing.assert_allclose(tangent.outputs, outputs.numpy(), atol=1e-14)
    np.testing.assert_allclose(tangent.predicted(update) - tangent.outputs, slope.numpy(), atol=1e-12)


def test_tangent_solutions_are_kernel_regression(network: nn.Module) -> None:
    """L2-SP in the tangent is ridge regression with the NTK, distillation a plain mix of outputs."""
    tangent = features.tangent(network, drawn(5))
    goal = contrastive_goal(tangent.outputs)
    problem, kernel = tangent.problem(goal), tangent.kernel
    residual = (goal - tangent.outputs).reshape(-1)
    assert np.linalg.matrix_rank(kernel) == len(kernel)
    for strength in (0.1, 2.0):
        ridge = kernel @ np.linalg.solve(kernel + strength * np.eye(len(kernel)), residual)
        change = tangent.predicted(solve.l2(problem, strength)) - tangent.outputs
        assert relative_distance(change.reshape(-1), ridge) < 1e-9
        mixed = tangent.outputs + (goal - tangent.outputs) / (1 + strength)
        assert relative_distance(tangent.predicted(solve.distilled(problem, strength)), mixed) < 1e-9
    assert relative_distance(tangent.predicted(solve.direct(problem)), goal) < 1e-9


def test_tangent_splits_into_task_and_complement(network: nn.Module) -> None:
    """An update stays in the span of the task's tangent features; others feel only their part in it."""
    tangent, other = features.tangent(network, drawn(3)), features.tangent(network, drawn(6, seed=9))
    problem = tangent.problem(contrastive_goal(tangent.outputs))
    for update in (solve.direct(problem), solve.l2(problem, 0.5), solve.distilled(problem, 0.5)):
        assert np.linalg.norm(problem.task.outside(update)) < 1e-10 * np.linalg.norm(update)
        beside = problem.task.outside(other.jacobian.T)
        assert np.abs(beside @ update.T).max() < 1e-10 * np.linalg.norm(update)
        felt = problem.task.inside(other.jacobian.T) @ update.T
        assert relative_distance(felt, other.jacobian.T @ update.T) < 1e-9


def test_moving_teacher_contracts_in_the_tangent(network: nn.Module) -> None:
    tangent = features.tangent(network, drawn(4))
    problem = tangent.problem(contrastive_goal(tangent.outputs))
    path = flow.simulate(problem, WMA(Beta(0.5)), strength=1.0, steps=50)
    assert relative_distance(path.error / path.error[0], flow.contraction(path.moves, 1.0)) < 1e-9


def test_network_itself_follows_the_tangent_when_it_moves_little() -> None:
    """Real gradient descent with a static teacher: the nearer the target, the smaller the misfit."""
    torch.manual_seed(1)
    network = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 2)).double()
    inputs, strength = drawn(3), 0.5
    tangent = features.tangent(network, inputs)
    misfits = []
    for size in (0.02, 0.01):
        problem = tangent.problem(tangent.outputs + size * contrastive_goal(tangent.outputs) / 10)
        reached = trained(network, inputs, problem, strength)
        misfits.append(relative_distance(reached, solve.distilled(problem, strength)))
    assert misfits[0] < 0.1
    assert misfits[1] / misfits[0] == pytest.approx(0.5, rel=0.15)


def trained(network: nn.Module, inputs: torch.Tensor, problem: Problem, strength: float) -> ndarray:
    """θ − θ₀ of the network after gradient descent on ½‖f − y‖² + (λ/2)‖f − f₀‖²."""
    initial = {name: value.detach() for name, value in network.named_parameters()}
    first = functional_call(network, initial, (inputs,)).detach()
    goal = first + torch.from_numpy(problem.target).reshape(first.shape)
    objective = descent.distilled_objective(problem, strength, problem.start)
    current = {name: value.clone().requires_grad_() for name, value in initial.items()}
    for _ in range(1500):
        outputs = functional_call(network, current, (inputs,))
        loss = ((outputs - goal) ** 2).sum() / 2 + strength * ((outputs - first) ** 2).sum() / 2
        slopes = torch.autograd.grad(loss, list(current.values()))
        current = {
            name: (value - 0.9 * objective.best_rate * slope).detach().requires_grad_()
            for (name, value), slope in zip(current.items(), slopes, strict=True)
        }
    return torch.cat([(current[name] - initial[name]).flatten() for name in initial])[None].detach().numpy()
