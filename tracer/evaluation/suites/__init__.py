"""Evaluation suites: test sets with roles, counted before they are scored."""

from __future__ import annotations

from collections.abc import Callable

from tracer.evaluation.suites.corruptions import corrupt
from tracer.evaluation.suites.emojishift import emojishift
from tracer.evaluation.suites.imagenet import COMPLETE, check, imagenet
from tracer.evaluation.suites.own import own, with_role
from tracer.evaluation.suites.shift import AbsentError, Average, Opened, Role, Shift, Suite
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
    "Opened",
    "Role",
    "Shift",
    "Suite",
    "check",
    "corrupt",
    "emojishift",
    "fmow",
    "imagenet",
    "iwildcam",
    "own",
    "with_role",
]
