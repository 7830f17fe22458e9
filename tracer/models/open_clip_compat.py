"""open_clip, imported so that it works with a CPU build of torch (see `torchvision_compat`)."""

from __future__ import annotations

import sys
import warnings

import tracer.models.torchvision_compat  # noqa: F401  (before torchvision, which open_clip imports)

import torchvision  # noqa: F401  # isort: skip

# timm, which open_clip imports, would import wandb for a training script of its own: half of the time at the start.
_absent = "wandb" not in sys.modules
if _absent:
    sys.modules["wandb"] = None  # pyright: ignore[reportArgumentType]
try:
    with warnings.catch_warnings():
        # A notebook without ipywidgets would open with tqdm's warning in red; our own progress needs none.
        warnings.filterwarnings("ignore", "IProgress not found")
        import open_clip  # isort: skip
finally:
    if _absent:
        del sys.modules["wandb"]

__all__ = ["open_clip"]
