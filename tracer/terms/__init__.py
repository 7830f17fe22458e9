"""The terms of every objective: pure mathematics over a scene. One sentence, the formula, the reference."""

from tracer.terms.anchors import anchored
from tracer.terms.classify import classify
from tracer.terms.contrastive import contrastive
from tracer.terms.distill import cross, feature, interactive, relational
from tracer.terms.frobenius import cross_frobenius
from tracer.terms.intermediate import intermediate
from tracer.terms.margin import margin
from tracer.terms.orthogonal import orthogonal
from tracer.terms.probe import context, energy, spurious
from tracer.terms.soft import soft_classes, soft_pairs

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
]
