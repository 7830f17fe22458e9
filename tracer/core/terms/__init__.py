"""Loss terms: pure functions of a scene. Each docstring gives one sentence, the formula and the reference."""

from tracer.core.terms.classify import classify, margin
from tracer.core.terms.contrastive import anchored, contrastive
from tracer.core.terms.distill import cross, feature, interactive, relational, soft_classes, soft_pairs
from tracer.core.terms.intermediate import intermediate, token_features
from tracer.core.terms.probe import context, energy, spurious
from tracer.core.terms.projections import cross_frobenius, orthogonal

__all__ = [
    "anchored",
    "classify",
    "context",
    "contrastive",
    "cross",
    "cross_frobenius",
    "energy",
    "feature",
    "interactive",
    "intermediate",
    "margin",
    "orthogonal",
    "relational",
    "soft_classes",
    "soft_pairs",
    "spurious",
    "token_features",
]
