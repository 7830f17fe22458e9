"""Several processes, one device each: what they share whether weights are copied or cut."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from itertools import pairwise
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from tracer.core.batch import Scene
from tracer.core.errors import Echo, UserError
from tracer.parallel import device as devices
from tracer.parallel.gather import gathered, global_scene
from tracer.parallel.grace import grace
from tracer.parallel.watch import Watch
from tracer.parallel.world import Lost, World

T = TypeVar("T")

PATIENCE = timedelta(minutes=30)  # for a process that lives: the first one may be writing for long
GONE = ("gloo", "nccl", "connection", "peer", "broken pipe", "timed out")  # what a lost peer sounds like


class Running(nn.Module):
    """A model behind functions of it, so that DDP and FSDP see one forward whatever is computed."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return function(self.model, *arguments)


class Group(World):
    """One of the processes that `torchrun` started; the environment says which."""

    def __init__(self, device: str = "auto", precision: str = "auto") -> None:
        self.device = devices.device(device, int(os.environ.get("LOCAL_RANK", "0")))
        self.bf16 = devices.bf16(self.device, precision)
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)
        store, self.rank, self.size = next(dist.rendezvous("env://", timeout=PATIENCE))
        self.neighbours = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        self._watch: Watch | None = None
        dist.init_process_group(
            "cpu:gloo,cuda:nccl" if self.device.type == "cuda" else "gloo",  # words always travel over gloo
            store=dist.PrefixStore("tracer", store),
            rank=self.rank,
            world_size=self.size,
            timeout=PATIENCE,
        )

    def gather(self, scene: Scene) -> Scene:
        return global_scene(super().gather(scene))

    def share(self, rows: range) -> Sequence[int]:
        own = _shares(len(rows), self.size)[self.rank]
        return rows[own.start : own.stop] or rows[:1]  # one row for nothing, which `collect` leaves out

    def collect(self, own: Tensor, count: int) -> Tensor:
        shares = _shares(count, self.size)
        padded = own.new_zeros(len(shares[0]), *own.shape[1:])  # the first share is the longest
        kept = len(shares[self.rank])
        padded[:kept] = own[:kept]
        parts = gathered(padded).chunk(self.size)
        return torch.cat([part[: len(share)] for part, share in zip(parts, shares, strict=True)])

    def united(self, found: dict[int, str]) -> dict[int, str]:
        everywhere = self._exchange({"found": list(found.items())})
        return dict(sorted((index, told) for each in everywhere for index, told in each["found"]))

    def together(self, action: Callable[[], T]) -> T:
        try:
            done = action()
        except (UserError, OSError) as error:
            self._confess(error)
            raise
        self._exchange({})
        return done

    def agree(self, asked: int | None, due: bool) -> int | None:
        if not due:
            return None
        return max(each["asked"] for each in self._exchange({"asked": asked or 0})) or None

    @contextmanager
    def guard(self) -> Iterator[None]:
        try:
            with grace():
                yield
        except RuntimeError as error:
            told = " ".join(str(error).split())
            if isinstance(error, dist.DistError) or any(word in told.lower() for word in GONE):
                raise Lost(f"another process is gone ({told[:160]})") from error
            raise

    def watch(self, lost: Callable[[Lost], None]) -> None:
        """Call `lost` when a process has fallen silent, even one that others wait for without end."""
        place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        store = dist.TCPStore(*place, is_master=False)  # a line of its own, which no collective keeps busy
        self._watch = Watch(store, self.rank, self.size, lost)

    def close(self) -> None:
        self._exchange({})
        if self._watch is not None:
            self._watch.stop()
        dist.destroy_process_group()

    def _confess(self, error: Exception) -> None:
        """Tell the others of an error; of those who say the same, only the first one says it aloud."""
        if isinstance(error, Echo):
            raise error
        try:
            self._exchange({"error": str(error)})
        except Echo:
            raise Echo from error

    def _exchange(self, words: dict[str, Any]) -> list[dict[str, Any]]:
        """What every process says, as JSON: the one way of talking, so that a refusal meets whoever waits."""
        said = torch.frombuffer(bytearray(json.dumps(words).encode()), dtype=torch.uint8)
        lengths = gathered(torch.tensor([len(said)])).tolist()
        padded = torch.zeros(max(lengths), dtype=torch.uint8)
        padded[: len(said)] = said
        rows = gathered(padded).view(self.size, -1)
        heard = [json.loads(bytes(row[:n].tolist())) for row, n in zip(rows, lengths, strict=True)]
        errors = [each.get("error") for each in heard]
        own = errors[self.rank]
        if any(errors) and (own is None or own in errors[: self.rank]):
            raise Echo
        return heard


def _shares(count: int, size: int) -> list[range]:
    """Rows 0…count−1 cut into `size` consecutive shares, the earlier ones at most one longer."""
    whole, rest = divmod(count, size)
    starts = [rank * whole + min(rank, rest) for rank in range(size + 1)]
    return [range(start, stop) for start, stop in pairwise(starts)]
