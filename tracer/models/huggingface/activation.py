"""The activation of timm's image towers.

timm's name fixes the activation: most SigLIP towers have the exact GELU there, and its tanh approximation in
transformers. open_clip ignores `act_kwargs` of a timm tower; tracer applies them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

GELUS = ("GELU", "GELUTanh")  # torch's and timm's


def set_trunk_activation(clip: Any, config: Mapping[str, Any]) -> None:
    """Give a timm image tower the form of GELU that its config asks for; without one it keeps its own."""
    approximate = (config["vision_cfg"].get("act_kwargs") or {}).get("approximate")
    trunk = getattr(clip.visual, "trunk", None)
    if trunk is None or approximate is None:
        return
    for module in list(trunk.modules()):
        for name, child in module.named_children():
            if type(child).__name__ in GELUS:
                setattr(module, name, nn.GELU(approximate))


def trunk_activation(clip: Any) -> str:
    """The name in transformers of the activation of a timm image tower."""
    for module in clip.visual.modules():
        if type(module).__name__ in GELUS:
            tanh = type(module).__name__ == "GELUTanh" or module.approximate == "tanh"
            return "gelu_pytorch_tanh" if tanh else "gelu"
    return "gelu"
