"""Several processes, one device each: what replicated and sharded weights have in common."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from itertools import pairwise
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from tracer.core.batch import Scene
from tracer.core.errors import AlreadyReported, UserError
from tracer.parallel import device as devices
from tracer.parallel.gather import all_gather, global_scene
from tracer.parallel.heartbeat import Heartbeat, ended_by_signals, grace_period
from tracer.parallel.launcher import launch
from tracer.parallel.world import Lost, World

T = TypeVar("T")

MEETING = timedelta(minutes=5)  # to start all processes
TIMEOUT = timedelta(minutes=30)  # of collectives; long, because the first process may be writing files
# Words in the messages of errors that a lost process causes in the others.
LOST_PEER = ("gloo", "nccl", "connection", "peer", "broken pipe", "timed out")


class FunctionOf(nn.Module):
    """Calls any function of a model as `forward`, the one entry that the hooks of DDP and FSDP need."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return function(self.model, *arguments)


class Group(World):
    """One of the processes that `torchrun` started; its rank comes from the environment."""

    def __init__(self, device: str = "auto", precision: str = "auto") -> None:
        self.rank, self.size, local_rank, self.local_size, _ = launch()
        self.device = devices.device(device, local_rank)
        self.bf16 = devices.bf16(self.device, precision)
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)
        self._heartbeat: Heartbeat | None = None
        with ended_by_signals():
            store, self._meeting = _meet(self.rank, self.size)
            dist.init_process_group(
                "cpu:gloo,cuda:nccl" if self.device.type == "cuda" else "gloo",  # messages always use gloo
                store=dist.PrefixStore(self._meeting, store),
                rank=self.rank,
                world_size=self.size,
                timeout=TIMEOUT,
            )

    def gather(self, scene: Scene) -> Scene:
        return global_scene(super().gather(scene))

    def share(self, rows: range) -> Sequence[int]:
        own = _shares(len(rows), self.size)[self.rank]
        return rows[own.start : own.stop] or rows[:1]  # without rows: one, which `collect` drops

    def collect(self, own: Tensor, count: int) -> Tensor:
        shares = _shares(count, self.size)
        padded = own.new_zeros(len(shares[0]), *own.shape[1:])  # the first share is the longest
        count_here = len(shares[self.rank])
        padded[:count_here] = own[:count_here]
        parts = all_gather(padded).chunk(self.size)
        return torch.cat([part[: len(share)] for part, share in zip(parts, shares, strict=True)])

    def all_or_none(self, action: Callable[[], T]) -> T:
        try:
            result = action()
        except (UserError, OSError) as error:
            self._report(error)
            raise
        self.agree({})
        return result

    @contextmanager
    def guard(self) -> Iterator[None]:
        try:
            with grace_period():
                yield
        except RuntimeError as error:
            message = " ".join(str(error).split())
            if isinstance(error, dist.DistError) or any(word in message.lower() for word in LOST_PEER):
                raise Lost(f"another process is gone ({message[:160]})") from error
            raise

    def start_heartbeat(self, lost: Callable[[Lost], None]) -> None:
        """Call `lost` when another process stops responding, even while this one waits in a collective."""
        address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        store = dist.TCPStore(*address, is_master=False)  # its own connection, which no collective blocks
        self._heartbeat = Heartbeat(dist.PrefixStore(self._meeting, store), self.rank, self.size, lost)

    def close(self) -> None:
        self.agree({})
        if self._heartbeat is not None:
            self._heartbeat.stop()
        dist.destroy_process_group()

    def _report(self, error: Exception) -> None:
        """Send an error to the others; of processes with equal errors, only the first one prints it."""
        if isinstance(error, AlreadyReported):
            raise error
        try:
            self.agree({"error": str(error)})
        except AlreadyReported:
            raise AlreadyReported from error

    def agree(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        """The messages of all processes. All use this one call, so an error reaches whoever waits in it."""
        messages: list[dict[str, Any]] = [{}] * self.size
        dist.all_gather_object(messages, message)
        errors = [each.get("error") for each in messages]
        own = errors[self.rank]
        if any(errors) and (own is None or own in errors[: self.rank]):
            raise AlreadyReported
        return messages


def _meet(rank: int, size: int) -> tuple[dist.Store, str]:
    """The store that all processes reach, once all are there, and the name of their meeting."""
    try:
        store, _, _ = next(dist.rendezvous("env://", timeout=MEETING))
        meeting = _meeting(store, rank, size)
    except (dist.DistError, ValueError) as error:
        place = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
        if "EADDRINUSE" in str(error):
            message = (
                f"{place} is taken by another program: give torchrun another --master-port, or --standalone"
            )
        else:
            message = (
                f"the {size} processes that WORLD_SIZE announces cannot meet at {place} "
                f"({' '.join(str(error).split())[:160]}): start them with torchrun, or unset WORLD_SIZE for one process"
            )
        raise UserError(message) from None
    store.set_timeout(TIMEOUT)
    return store, meeting


def _meeting(store: dist.Store, rank: int, size: int) -> str:
    """A name that the processes of this start have in common, and no earlier start had.

    The store may be the launcher's and hold what processes have written that are gone. A count of restarts does not
    tell them apart: each machine has its own, and a machine that joins starts all anew without counting. So every
    process says an own word, and goes on when the first one, which says its word to each that it finds, has answered.
    """
    own = secrets.token_hex(8)
    if rank > 0:
        store.set(f"arrived/{rank}", own)
        meeting = store.get(f"meeting/{own}").decode()
        store.add(f"{meeting}/met", 1)
        return meeting
    welcomed: dict[int, str] = {}
    deadline = time.monotonic() + MEETING.total_seconds()
    while store.add(f"{own}/met", 0) < size - 1:
        if time.monotonic() > deadline:
            raise dist.DistStoreError(f"{MEETING} have passed")
        for other in range(1, size):
            if store.check([f"arrived/{other}"]):
                word = store.get(f"arrived/{other}").decode()
                if welcomed.get(other) != word:  # of an earlier start, until the process itself arrives
                    welcomed[other] = word
                    store.set(f"meeting/{word}", own)
        time.sleep(0.02)
    return own


def _shares(count: int, size: int) -> list[range]:
    """Rows 0…count−1 in `size` consecutive shares, the earlier ones at most one row longer."""
    length, rest = divmod(count, size)
    starts = [rank * length + min(rank, rest) for rank in range(size + 1)]
    return [range(start, stop) for start, stop in pairwise(starts)]
