"""Contrastive finetuning of one linear tower, as the least-squares problem that the theory solves.

    X  inputs   d × n   image features, one per column          W⁰  start    p × d   pretrained image map
    Y  target   p × n   what W X should be (Y_FT)               s_ij         (W x_i)ᵀ (W_T t_j)

Reference: TRACER, §3 and appendix "Derivation of L_CL", "Reformulation of the Least-Squares Objective".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from studies.theory import subspace


@dataclass(frozen=True)
class Problem:
    """½‖W X − Y‖² from W⁰, factorised once for all closed forms."""

    inputs: Float[ndarray, "d n"]
    target: Float[ndarray, "p n"]
    start: Float[ndarray, "p d"]

    def __post_init__(self) -> None:
        (d, n), (p, m) = self.inputs.shape, self.target.shape
        if m != n or self.start.shape != (p, d):
            raise ValueError(
                f"inputs {self.inputs.shape} and target {self.target.shape} need as many columns, "
                f"and a start of shape {(p, d)}, not {self.start.shape}"
            )

    @cached_property
    def task(self) -> subspace.Subspace:
        """range(X), the task subspace."""
        return subspace.spanned(self.inputs)

    @cached_property
    def start_inside(self) -> Float[ndarray, "p r"]:
        """W⁰ U: the pretrained map inside the task subspace."""
        return self.task.coordinates(self.start)

    @cached_property
    def best(self) -> Float[ndarray, "p r"]:
        """W* U = Y V S⁻¹: the minimum-norm task solution inside the task subspace, where all of it lies."""
        return self.target @ self.task.loadings / self.task.spectrum


def contrastive(
    images: Float[ndarray, "d n"],
    texts: Float[ndarray, "e n"],
    image_map: Float[ndarray, "p d"],
    text_map: Float[ndarray, "p e"],
) -> Problem:
    """The problem of finetuning the image map on pairs with a frozen text map."""
    return Problem(images, contrastive_target(texts, text_map), image_map)


def contrastive_target(
    texts: Float[ndarray, "e n"], text_map: Float[ndarray, "p e"]
) -> Float[ndarray, "p n"]:
    """Y_FT = W_T X_T (n I − J): each text n times, minus all of them; the columns sum to zero."""
    embedded = text_map @ texts
    return texts.shape[1] * embedded - embedded.sum(axis=1, keepdims=True)


def mmcl(
    image_map: Float[ndarray, "p d"],
    text_map: Float[ndarray, "p e"],
    images: Float[ndarray, "d n"],
    texts: Float[ndarray, "e n"],
    penalty: float = 0.0,
) -> float:
    """The linearised contrastive loss, both directions, with the cross-Frobenius penalty.

    L = Σ_i Σ_{j≠i} [(s_ij − s_ii) + (s_ji − s_ii)] / (2n(n−1)) + (ρ/2)‖W_Iᵀ W_T‖².
    """
    n = images.shape[1]
    similarity = (image_map @ images).T @ (text_map @ texts)
    paired = np.diag(similarity)[:, None]
    both = (similarity - paired).sum() + (similarity.T - paired).sum()
    return float(both / (2 * n * (n - 1)) + penalty * cross_frobenius(image_map, text_map))


def cross_frobenius(image_map: Float[ndarray, "p d"], text_map: Float[ndarray, "p e"]) -> float:
    """½‖W_Iᵀ W_T‖², by the two p × p Gram matrices instead of the d × e product."""
    return float(((image_map @ image_map.T) * (text_map @ text_map.T)).sum() / 2)


def trace_form(problem: Problem, weights: Float[ndarray, "p d"]) -> float:
    """L_CL = −Tr(Yᵀ W X) = n(n−1) (L_MMCL − penalty): linear in W, so unbounded below."""
    return -float((problem.target * (weights @ problem.inputs)).sum())


def least_squares(problem: Problem, weights: Float[ndarray, "p d"]) -> float:
    """½‖W X − Y‖²."""
    return float(np.square(weights @ problem.inputs - problem.target).sum() / 2)


def separating_quadratic(problem: Problem, weights: Float[ndarray, "p d"]) -> float:
    """½‖W X‖²: least squares = trace form + this + ½‖Y‖². It makes the problem well posed."""
    return float(np.square(weights @ problem.inputs).sum() / 2)
