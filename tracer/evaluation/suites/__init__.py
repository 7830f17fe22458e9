"""Evaluation suites: test sets with roles, counted before they are scored."""

from __future__ import annotations

from collections.abc import Callable

from tracer.evaluation.suites.emojishift import emojishift
from tracer.evaluation.suites.imagenet import imagenet
from tracer.evaluation.suites.shift import Suite
from tracer.evaluation.suites.wilds import fmow, iwildcam

SUITES: dict[str, Callable[..., Suite]] = {
    "imagenet": imagenet,
    "iwildcam": iwildcam,
    "fmow": fmow,
    "emojishift": emojishift,
}
EMBEDDED = ("emojishift",)  # suites whose data ship with the package
