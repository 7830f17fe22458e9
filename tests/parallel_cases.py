"""What is trained by one process and by two: every method with each kind of targets, and every regularizer."""

from __future__ import annotations

from tracer.core.regularizers import REGULARIZERS
from tracer.methods.base import methods, options

# One case of every term, regularizer and kind of run; the others are compositions of these.
STRUCTURES = (
    "arf-class",
    "carft",
    "carot-pair",
    "clipood",
    "flyp-ftp",
    "flyp-l2sp",
    "flyp-spd",
    "kd",
    "ldifs",
    "lipsum",
    "lpft",
    "starft-pair",
    "stock",
    "tracer-class",
    "tracer-pair",
)


def targets(name: str) -> list[str]:
    """The method's cases: one of each kind of targets, or one."""
    kinds = ("pair", "class") if "targets" in {option.name for option in options(name)} else ()
    return [f"{name}-{kind}" for kind in kinds] or [name]


CASES = [case for name in methods() for case in targets(name)] + [
    f"flyp-{regularizer}" for regularizer in REGULARIZERS
]
