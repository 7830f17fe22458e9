"""Regularizers toward the pretrained weights, for any objective: `--regularizer l2sp:0.1`, ftp, spd."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from tracer.core.errors import UserError, unknown
from tracer.core.regularizers.base import Attached, Regularizer
from tracer.core.regularizers.ftp import FTP
from tracer.core.regularizers.l2sp import L2SP
from tracer.core.regularizers.spd import SPD

REGULARIZERS: dict[str, type[Any]] = {"l2sp": L2SP, "ftp": FTP, "spd": SPD}


def regularizer(spelling: str) -> Regularizer:
    """Parse NAME, NAME:VALUE (the value of its first option) or NAME:OPTION=VALUE,OPTION=VALUE."""
    name, _, assignments = spelling.partition(":")
    if name not in REGULARIZERS:
        raise unknown("regularizer", name, REGULARIZERS)
    known = [field.name for field in fields(REGULARIZERS[name])]
    options: dict[str, Any] = {}
    for assignment in assignments.split(",") if assignments else []:
        key, equals, value = assignment.partition("=")
        key, value = (key, value) if equals else (known[0], assignment)
        if key not in known:
            raise unknown(f"option of regularizer {name}", key, known)
        options[key] = _value(value)
    try:
        return REGULARIZERS[name](**options)
    except (TypeError, ValueError) as error:
        raise UserError(f"regularizer {spelling}: {error}") from None


def _value(text: str) -> float | bool | str:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return float(text)
    except ValueError:
        return text


__all__ = ["FTP", "L2SP", "REGULARIZERS", "SPD", "Attached", "Regularizer", "regularizer"]
