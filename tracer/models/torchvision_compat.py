"""Let torchvision be imported beside a CPU build of torch.

torchvision wheels built for CUDA cannot load their compiled part beside a CPU torch, and `import torchvision` then
fails with "operator torchvision::nms does not exist". open_clip and tracer do not call these operators, so declaring
their schemas is enough. It is done only when the import has failed for this reason.

Importing this module installs an import hook and imports nothing else; `make` copies the file into its environment,
with a `.pth` line that imports it, so that any `import open_clip` there works.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

_declarations: list[object] = []  # a declaration lives as long as its torch.library.Library


class TorchvisionFinder:
    """A finder for `sys.meta_path`: torchvision as usual, with a second attempt if its operators are missing."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name == "torchvision" else None
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            try:
                execute(module)
            except RuntimeError as error:
                if "torchvision::nms" not in str(error):
                    raise
                for loaded in [each for each in sys.modules if each.startswith("torchvision.")]:
                    del sys.modules[loaded]
                _declare_operators()
                execute(module)

        spec.loader.exec_module = exec_module
        return spec


def _declare_operators() -> None:
    import torch

    library = torch.library.Library("torchvision", "FRAGMENT")
    for operator in ("nms", "qnms"):
        library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _declarations.append(library)


sys.meta_path.insert(0, TorchvisionFinder)  # pyright: ignore[reportArgumentType]  (a class with static methods)
