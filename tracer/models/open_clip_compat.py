"""open_clip, imported so that it works with a CPU build of torch.

torchvision wheels built for CUDA cannot load their compiled part beside a CPU torch, and `import torchvision` then
fails with "operator torchvision::nms does not exist". tracer does not call these operators, so declaring their
schemas is enough. It is done only when the import has failed for this reason.
"""

from __future__ import annotations

import sys

import torch

_libraries: list[torch.library.Library] = []  # a declaration lives as long as its Library


def _import_torchvision() -> None:
    try:
        import torchvision
    except RuntimeError as error:
        if "torchvision::nms" not in str(error):
            raise
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        library = torch.library.Library("torchvision", "FRAGMENT")
        library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _libraries.append(library)
        import torchvision  # noqa: F401


_import_torchvision()

import open_clip  # noqa: E402

__all__ = ["open_clip"]
