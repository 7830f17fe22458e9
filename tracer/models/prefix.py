"""The frozen first blocks of both towers, computed once for student and teacher."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from tracer.models.running_statistics import running_layers
from tracer.models.student import Student
from tracer.models.towers import Tower


class SharedPrefix:
    """A context in which the teacher's first blocks return what the student's have computed for the same input.

    Student and teacher have to embed the same inputs in the same order, the student first; or the teacher every k-th
    row of them. Results are the same up to rounding: torch computes attention by another kernel where no gradient is
    needed.
    """

    def __init__(self, every: int = 1) -> None:
        self.active, self.every = False, every
        self._outputs: list[deque[Any]] = []  # of each tower

    def __enter__(self) -> None:
        self.active = True

    def __exit__(self, *exception: object) -> None:
        self.active = False
        for outputs in self._outputs:
            outputs.clear()

    def add(self, student_blocks: list[nn.Module], teacher_blocks: list[nn.Module]) -> None:
        """Share the outputs of these blocks of a tower."""
        outputs: deque[Any] = deque()
        self._outputs.append(outputs)

        def keep(module: nn.Module, inputs: Any, output: Any) -> None:
            del module, inputs
            if self.active:
                outputs.append(tree_map_only(Tensor, lambda rows: rows[:: self.every], output))

        student_blocks[-1].register_forward_hook(keep)
        for block in teacher_blocks[:-1]:
            block.forward = self._instead_of(block.forward, lambda x: _like(outputs[0], x))
        last = teacher_blocks[-1]
        last.forward = self._instead_of(last.forward, lambda x: outputs.popleft())

    def _instead_of(self, forward: Callable[..., Any], shortcut: Callable[[Any], Any]) -> Callable[..., Any]:
        def either(x: Any, *arguments: Any, **options: Any) -> Any:
            return shortcut(x) if self.active else forward(x, *arguments, **options)

        return either


def _like(output: Any, x: Tensor) -> Any:
    """What a block before the last shared one hands on: its input, and beside it what the last one does."""
    return (x, *output[1:]) if isinstance(output, tuple) else x


def share_prefix(student: Student, teacher: Student, every: int = 1) -> SharedPrefix | None:
    """Let the teacher use the student's outputs of frozen first blocks in `embed_both`; None if there are none.

    A teacher that is shown `every` k-th pair has other texts, cut at another length: it uses those of images only.
    """
    prefix = SharedPrefix(every)
    for tower, copy in zip(student.towers, teacher.towers, strict=True):
        own = tower.kind == "text" and (student.text_frozen or every > 1)
        count = 0 if own else _frozen(tower)
        if count:
            prefix.add([*tower.blocks.values()][:count], [*copy.blocks.values()][:count])
    return prefix if prefix._outputs else None


def _frozen(tower: Tower) -> int:
    """The number of first blocks whose output does not change in training; 0 if the layers before them train."""
    if tower.unplaced or any(parameter.requires_grad for parameter in tower.input_parameters):
        return 0
    whole = [
        type(module).__name__ == "PatchDropout" or _drops(module, "layerdrop")
        for module in tower.module.modules()
    ]
    if any(whole):
        return 0
    trained = (i for i, block in enumerate(tower.blocks.values()) if not _constant(block))
    return next(trained, 0)  # where no block trains, nothing is shared: there may be other trained layers


def _constant(block: nn.Module) -> bool:
    if any(_drops(module) for module in block.modules()):
        return False
    updates = any(layer.training for layer in running_layers(block).values())
    return not updates and not any(p.requires_grad for p in block.parameters())


def _drops(module: nn.Module, name: str = "drop") -> bool:
    """Whether a module leaves out something at random in train mode: a layer for that, or a rate of its own."""
    if name in "dropout" and isinstance(module, nn.modules.dropout._DropoutNd):
        return module.p > 0
    rates = (value for key, value in vars(module).items() if name in key and not key.startswith("_"))
    return any(isinstance(rate, float) and rate > 0 for rate in rates)
