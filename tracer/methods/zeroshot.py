"""Zero-shot: no training, the pretrained model as it is."""

from __future__ import annotations

from tracer.methods.base import Method


def zeroshot() -> Method:
    """Keep the pretrained model: the row every other row is compared with."""
    return Method((), title="Zero-shot", paper="arXiv:2103.00020", year=2021, matter=("templates",))
