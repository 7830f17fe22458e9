"""Regularizers toward the pretrained weights, for any objective: `--regularizer l2sp:0.1`, ftp, spd."""

from __future__ import annotations

from typing import Any

from tracer.core.regularizers.base import Attached, Regularizer
from tracer.core.regularizers.ftp import FTP
from tracer.core.regularizers.l2sp import L2SP
from tracer.core.regularizers.spd import SPD
from tracer.core.spelling import parse

REGULARIZERS: dict[str, type[Any]] = {"l2sp": L2SP, "ftp": FTP, "spd": SPD}


def regularizer(spelling: str) -> Regularizer:
    """Parse NAME, NAME:VALUE (the value of its first option) or NAME:OPTION=VALUE,OPTION=VALUE."""
    return parse("regularizer", spelling, REGULARIZERS)


__all__ = ["FTP", "L2SP", "REGULARIZERS", "SPD", "Attached", "Regularizer", "regularizer"]
