"""open_clip, imported at its first use, and so that it works with a CPU build of torch (see `torchvision_compat`).

Importing it takes seconds (transformers, timm, torchvision and torch's compiler): commands without a model, and help,
never need it.
"""

from __future__ import annotations

import sys
import warnings
from functools import cache
from types import ModuleType
from typing import Any

import tracer.models.torchvision_compat  # noqa: F401  (before torchvision, which open_clip imports)


@cache
def _import() -> ModuleType:
    import torchvision  # noqa: F401  (through the hook of torchvision_compat)

    # timm, which open_clip imports, would import wandb for a training script of its own: half of the time at the start.
    absent = "wandb" not in sys.modules
    if absent:
        sys.modules["wandb"] = None  # pyright: ignore[reportArgumentType]
    try:
        with warnings.catch_warnings():
            # A notebook without ipywidgets would open with tqdm's warning in red; our own progress needs none.
            warnings.filterwarnings("ignore", "IProgress not found")
            import open_clip

            return open_clip
    finally:
        if absent:
            del sys.modules["wandb"]


class _LazyModule:
    """Reads and sets the attributes of open_clip; it has none of its own."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        return getattr(_import(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(_import(), name, value)


open_clip: Any = _LazyModule()
