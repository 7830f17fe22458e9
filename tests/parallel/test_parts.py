"""The parts that need no second process: shares, blocks, the heartbeat and the arithmetic of cost."""

from __future__ import annotations

import socket
import threading
import weakref

import pytest
import torch
import torch.distributed as dist
from torch import nn

from studies.bench.communication import Model, cost, similarity
from tracer.methods.base import method
from tracer.parallel.group import _shares
from tracer.parallel.heartbeat import Heartbeat
from tracer.parallel.replicated import Replicated
from tracer.parallel.sharded import blocks
from tracer.parallel.world import Lost

MODEL = Model(parameters=1000, width=64, work=1e6)


@pytest.mark.parametrize("count", [0, 1, 2, 7, 8, 1000])
@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_shares_hold_every_row_once_and_differ_by_at_most_one(count: int, size: int) -> None:
    shares = _shares(count, size)
    assert [row for share in shares for row in share] == list(range(count))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_blocks_are_the_repeated_parts() -> None:
    tower = nn.Sequential(*(nn.Sequential(nn.Linear(2, 2), nn.ReLU()) for _ in range(3)))
    model = nn.Module()
    model.tower, model.last = tower, nn.Linear(2, 2)
    assert blocks(model) == list(tower)


def test_a_process_that_falls_silent_is_noticed_by_all_others() -> None:
    store, noticed, told = dist.HashStore(), threading.Semaphore(0), list[Lost]()

    def lost(error: Lost) -> None:
        told.append(error)
        noticed.release()

    heartbeats = [Heartbeat(store, rank, 3, lost, beat=0.02) for rank in range(3)]
    heartbeats[1].stop()
    assert noticed.acquire(timeout=30)
    assert noticed.acquire(timeout=30)
    assert all("process 1 has not been heard of" in str(error) for error in told)


def test_an_infonce_is_two_products_forward_and_four_back() -> None:
    operations, kept = similarity(method("flyp").stages[0].objective, 64)
    assert operations == 2 * 64 * 6  # both directions are computed
    assert kept >= 8  # two softmaxes in fp32


@pytest.mark.parametrize(("name", "copies"), [("flyp", 3), ("tracer", 4)])
def test_a_checkpoint_holds_weights_moments_and_teacher_however_many_save_it(name: str, copies: int) -> None:
    objective = method(name).stages[0].objective
    for processes in (8, 64):
        cut = cost(MODEL, objective, processes=processes, batch=512, shard=True)
        assert cut.saved == copies * 4 * MODEL.parameters
        assert cut.fetched == cut.saved * 7 / 8  # an eighth of it was here already
    assert cost(MODEL, objective, processes=8, batch=512).fetched == 0  # whole everywhere


def test_only_the_similarity_is_not_divided_by_more_processes() -> None:
    objective = method("tracer").stages[0].objective
    few, many = (cost(MODEL, objective, processes=n, batch=512, shard=True) for n in (8, 64))
    assert few.similarity == many.similarity
    assert few.share < many.share
    copied = cost(MODEL, objective, processes=8, batch=512)
    assert copied.held == 8 * few.held == 20 * MODEL.parameters


def test_a_wrapped_student_is_freed_before_its_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reducer that outlives the group ends it while it holds the GIL: now and then a finished run hung for ever."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
    for name, value in {**address, "RANK": "0", "WORLD_SIZE": "1"}.items():
        monkeypatch.setenv(name, value)
    world, student = Replicated("cpu", "fp32"), nn.Linear(2, 2)
    world.prepare(student)
    world.forward(lambda model, images: model(images), student, torch.ones(1, 2)).sum().backward()
    wrapped = weakref.ref(world._wrapped[student])
    alive, destroy = [], dist.destroy_process_group

    def destroyed() -> None:
        alive.append(wrapped() is not None)
        destroy()

    monkeypatch.setattr(dist, "destroy_process_group", destroyed)
    world.close()
    assert alive == [False]
