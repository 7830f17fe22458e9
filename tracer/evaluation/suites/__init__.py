"""Evaluation suites: test sets with roles, counted before they are scored."""

from __future__ import annotations

from collections.abc import Callable

from tracer.evaluation.suites.emojishift import emojishift
from tracer.evaluation.suites.imagenet import imagenet
from tracer.evaluation.suites.shift import Suite

SUITES: dict[str, Callable[..., Suite]] = {"imagenet": imagenet, "emojishift": emojishift}
EMBEDDED = ("emojishift",)  # suites whose data ship with the package
