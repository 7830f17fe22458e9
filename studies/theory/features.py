"""The same theory in a feature space: random features, and the tangent features of a network.

The closed forms hold for any inputs. With φ(X) in place of X they describe a linear
map on random features; with the Jacobian of a network at its pretrained parameters, the network in the lazy
regime, f(x; θ) ≈ f(x; θ₀) + J(x)(θ − θ₀). The paper names both as future work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vmap

from studies.theory.problem import Problem


@dataclass(frozen=True)
class RandomFeatures:
    """φ(x) = √(2/m) · g(A x + b), m random units; φᵀφ approaches the kernel of an infinite layer."""

    directions: Float[ndarray, "m d"]
    offsets: Float[ndarray, " m"]
    activation: Callable[[ndarray], ndarray]

    def __call__(self, inputs: Float[ndarray, "d n"]) -> Float[ndarray, "m n"]:
        raw = self.activation(self.directions @ inputs + self.offsets[:, None])
        return np.sqrt(2 / len(self.offsets)) * raw


def rectified(width: int, dimension: int, rng: np.random.Generator) -> RandomFeatures:
    """Random ReLU units (the arc-cosine kernel)."""
    return RandomFeatures(
        rng.normal(size=(width, dimension)), np.zeros(width), lambda raw: np.maximum(raw, 0.0)
    )


def fourier(width: int, dimension: int, rng: np.random.Generator, bandwidth: float = 1.0) -> RandomFeatures:
    """Random cosines (the Gaussian kernel exp(−‖x−y‖²/(2h²)))."""
    directions = rng.normal(size=(width, dimension)) / bandwidth
    return RandomFeatures(directions, rng.uniform(0, 2 * np.pi, width), np.cos)


@dataclass(frozen=True)
class Tangent:
    """A network to first order around its present parameters θ₀, on given inputs."""

    jacobian: Float[ndarray, "P outputs"]  # column (i, k): the gradient of output k on input i
    outputs: Float[ndarray, "n p"]  # f(x_i; θ₀)

    @property
    def kernel(self) -> Float[ndarray, "outputs outputs"]:
        """The empirical neural tangent kernel JᵀJ."""
        return self.jacobian.T @ self.jacobian

    def problem(self, target: Float[ndarray, "n p"]) -> Problem:
        """Finetuning toward `target`, with θ − θ₀ for weights: one row, zero at the start.

        ½‖f − target‖² is the task, (λ/2)‖θ − θ₀‖² is L2-SP and (λ/2)‖f − f₀‖² self-distillation, as before.
        """
        wanted = (target - self.outputs).reshape(1, -1)
        return Problem(self.jacobian, wanted, np.zeros((1, len(self.jacobian))))

    def predicted(self, update: Float[ndarray, "1 P"]) -> Float[ndarray, "n p"]:
        """f(x; θ₀) + J(x)(θ − θ₀) for an update θ − θ₀."""
        return self.outputs + (update @ self.jacobian).reshape(self.outputs.shape)


def tangent(network: nn.Module, inputs: Float[Tensor, "n ..."]) -> Tangent:
    """The tangent features of a small network; parameters in the order of `parameters()`."""
    parameters = {name: value.detach() for name, value in network.named_parameters()}
    buffers = {name: value.detach() for name, value in network.named_buffers()}

    def output(parameters: dict[str, Tensor], single: Tensor) -> Tensor:
        return functional_call(network, (parameters, buffers), (single[None],))[0].reshape(-1)

    slopes = vmap(jacrev(output), in_dims=(None, 0))(parameters, inputs)
    stacked = torch.cat([slopes[name].flatten(start_dim=2) for name in parameters], dim=2)
    with torch.no_grad():
        outputs = vmap(output, in_dims=(None, 0))(parameters, inputs)
    return Tangent(_double(stacked.flatten(end_dim=1).T), _double(outputs))


def _double(tensor: Tensor) -> ndarray:
    return tensor.detach().to("cpu", torch.float64).numpy()
