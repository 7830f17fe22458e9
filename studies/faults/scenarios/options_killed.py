"""SIGKILL in training with workers, --every, --chunk, adapters, regularizers, captions and others; bits compared."""

from __future__ import annotations

from collections.abc import Iterator

from studies.faults.repeated_kills import killed_repeatedly
from studies.faults.verdict import Verdict
from studies.faults.workspace import Workspace

# Options of the loop and of the machine, each with a method that they matter to.
VARIANTS: dict[str, tuple[str, dict[str, object]]] = {
    "two workers": ("tracer", {"workers": 2}),
    "the teacher every 2 steps": ("tracer", {"every": 2}),
    "the teacher every 3 steps, two workers": ("ema_sd", {"every": 3, "workers": 2}),
    "chunks": ("tracer", {"chunk": 3}),
    "chunks and --every": ("tracer", {"chunk": 4, "every": 2}),
    "l2sp": ("flyp", {"regularizer": "l2sp:0.1"}),
    "ftp": ("flyp", {"regularizer": "ftp"}),
    "spd": ("tracer", {"regularizer": "spd:1"}),
    "augmentation": ("tracer", {"augment": "crop"}),
    "retention of emoji": ("flyp", {"retain": None}),
    "captions": ("tracer", {"data": "pairs"}),
    "a save every step": ("tracer", {"save_every": 1}),
    "LoRA with a frozen factor": ("tracer", {"adapter": "lora:rank=2"}),
    "LoRA with both factors": ("tracer", {"adapter": "lora:rank=2,factors=AB"}),
    "prompts": ("tracer", {"adapter": "prompts:image=2,text=2"}),
    "the last block": ("tracer", {"tune": "last-1"}),
}


def trials(workspace: Workspace) -> Iterator[Verdict]:
    """Each run is killed at random points, again and again, resumed, and compared with an undisturbed one."""
    for title in workspace.sample(1, sorted(VARIANTS)):
        method, flags = VARIANTS[title]
        yield from killed_repeatedly(workspace, title, method, flags)
