"""Sweeps: many experiments, run N at a time; finished runs are skipped and interrupted ones resumed."""

from __future__ import annotations

from tracer.sweep.product import START, Sweep, product
from tracer.sweep.recipe import recipe

__all__ = ["START", "Sweep", "product", "recipe"]
