"""Counts the bytes of allocated tensors, operation by operation, on any device."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class AllocationCounter(TorchDispatchMode):
    """A context that counts the bytes of tensors created inside: `current`, and their `peak`."""

    def __init__(self, excluded: Iterable[Tensor] = ()) -> None:
        super().__init__()
        self.current = self.peak = 0
        self._storages = {tensor.untyped_storage()._cdata for tensor in excluded}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        outputs = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(outputs):
            if isinstance(tensor, Tensor):
                self._add(tensor)
        self.peak = max(self.peak, self.current)
        return outputs

    def _add(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()  # shared by views, so that bytes are counted once
        key, size = storage._cdata, storage.nbytes()
        if key not in self._storages:
            self._storages.add(key)
            self.current += size
            weakref.finalize(storage, self._remove, key, size).atexit = False

    def _remove(self, key: int, size: int) -> None:
        self._storages.discard(key)
        self.current -= size
