"""The terms of every objective: pure mathematics over a scene. One sentence, the formula, the reference."""

from tracer.terms.classify import classify
from tracer.terms.contrastive import contrastive
from tracer.terms.distill import cross, feature, interactive, relational
from tracer.terms.frobenius import cross_frobenius

__all__ = ["classify", "contrastive", "cross", "cross_frobenius", "feature", "interactive", "relational"]
