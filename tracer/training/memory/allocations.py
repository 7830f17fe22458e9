"""Bytes of tensors, counted operation by operation, on any device and without asking its allocator."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Ledger(TorchDispatchMode):
    """While it is open, counts the bytes of tensors that are made inside, and remembers their peak."""

    def __init__(self, present: Iterable[Tensor] = ()) -> None:
        super().__init__()
        self.held = self.peak = 0
        self._known = {tensor.untyped_storage()._cdata for tensor in present}  # there before, not counted

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(made):
            if isinstance(tensor, Tensor):
                self._enter(tensor)
        self.peak = max(self.peak, self.held)
        return made

    def _enter(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()  # views share one, so that bytes are counted once
        key, size = storage._cdata, storage.nbytes()
        if key not in self._known:
            self._known.add(key)
            self.held += size
            weakref.finalize(storage, self._leave, key, size).atexit = False

    def _leave(self, key: int, size: int) -> None:
        self._known.discard(key)
        self.held -= size
