"""Evaluation suites: test sets with roles, counted before they are scored."""

from __future__ import annotations

from collections.abc import Callable

from tracer.evaluation.suites.corruptions import Corrupted, corrupt, corrupted
from tracer.evaluation.suites.emojishift import emojishift
from tracer.evaluation.suites.imagenet import COMPLETE, check, imagenet, parse_locations
from tracer.evaluation.suites.own import own, with_role
from tracer.evaluation.suites.projection import Columns, Everything, LargestOf, Projection
from tracer.evaluation.suites.shift import AbsentError, Average, Opened, Opening, Role, Shift, Suite
from tracer.evaluation.suites.wilds import fmow, iwildcam

SUITES: dict[str, Callable[..., Suite]] = {
    "imagenet": imagenet,
    "iwildcam": iwildcam,
    "fmow": fmow,
    "emojishift": emojishift,
}
EMBEDDED = ("emojishift",)  # suites whose data ship with the package

__all__ = [
    "COMPLETE",
    "EMBEDDED",
    "SUITES",
    "AbsentError",
    "Average",
    "Columns",
    "Corrupted",
    "Everything",
    "LargestOf",
    "Opened",
    "Opening",
    "Projection",
    "Role",
    "Shift",
    "Suite",
    "check",
    "corrupt",
    "corrupted",
    "emojishift",
    "fmow",
    "imagenet",
    "iwildcam",
    "own",
    "parse_locations",
    "with_role",
]
