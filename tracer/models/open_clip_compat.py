"""open_clip, imported so that it works with a CPU build of torch (see `torchvision_compat`)."""

from __future__ import annotations

import tracer.models.torchvision_compat  # noqa: F401  (before torchvision, which open_clip imports)

import torchvision  # noqa: F401  # isort: skip
import open_clip  # isort: skip

__all__ = ["open_clip"]
