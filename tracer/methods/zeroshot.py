"""Zero-shot: the pretrained model without training."""

from __future__ import annotations

from tracer.methods.base import Method


def zeroshot() -> Method:
    """No training: the baseline for all other methods."""
    return Method((), title="Zero-shot", paper="arXiv:2103.00020", year=2021, matter=("templates",))
