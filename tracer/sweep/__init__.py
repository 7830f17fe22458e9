"""Sweeps: a product of settings, run N at a time, skipped where done, gone on with after a crash."""

from __future__ import annotations

from tracer.sweep.product import START, Sweep, product
from tracer.sweep.recipe import recipe

__all__ = ["START", "Sweep", "product", "recipe"]
