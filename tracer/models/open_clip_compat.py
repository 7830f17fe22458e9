"""open_clip, imported so that it works with a CPU build of torch (see `torchvision_compat`)."""

from __future__ import annotations

import tracer.models.torchvision_compat  # noqa: F401  (before open_clip, which imports torchvision)

import open_clip  # isort: skip

__all__ = ["open_clip"]
