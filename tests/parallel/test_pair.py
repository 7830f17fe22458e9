"""Two processes are one: the same losses, gradients, teachers and scores, whichever way the weights are held."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from closeness import bound
from parallel_cases import CASES, STRUCTURES

SUMS = 1000  # a text of 16 tokens and a tower 8 wide, a batch of 8, and three steps behind each other
EXACT = bound(SUMS, size=10)  # float64; losses are up to ten, the gradient is cut to a length of a half
SINGLE = bound(SUMS, size=10, dtype=torch.float32)

Found = dict[str, Any]


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=() if case in STRUCTURES else pytest.mark.slow) for case in CASES],
)
def test_two_processes_train_what_one_does(found: Found, case: str) -> None:
    equal(found["runs"][f"{case} ddp"])


@pytest.mark.parametrize("case", ["tracer-class", "lpft", "flyp-ftp", "stock"])
def test_shards_train_what_one_process_does(found: Found, case: str) -> None:
    equal(found["runs"][f"{case} fsdp"])


@pytest.mark.parametrize("case", ["pair ddp", "chunk ddp", "chunk fsdp"])
def test_the_pairs_of_a_sigmoid_loss_are_divided_among_processes(found: Found, case: str) -> None:
    equal(found["runs"][f"sigmoid-{case}"])


@pytest.mark.parametrize(
    "thrift",
    [
        "chunk",
        pytest.param("compiled", marks=pytest.mark.slow),
        "pairs",
        "last",
        "lora",
        "prompts",
    ],
)
@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_what_is_saved_in_two_processes_changes_nothing(found: Found, kind: str, thrift: str) -> None:
    """A batch in chunks, towers compiled, distillation of every other pair, a teacher that
    shares what is frozen, with last blocks, with adapters and with prompts."""
    equal(found["runs"][f"tracer-{thrift} {kind}"])


def test_statistics_that_are_kept_are_those_of_one_process(found: Found) -> None:
    equal(found["runs"]["tracer-batchnorm ddp"])


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_the_teacher_is_the_same_after_five_steps(found: Found, kind: str) -> None:
    assert found["runs"][f"tracer-class {kind}"]["teacher"] < EXACT


@pytest.mark.parametrize("case", ["tracer-class", "lpft", "flyp-ftp"])
@pytest.mark.parametrize("path", ["one to ddp", "ddp to one", "one to fsdp", "fsdp to one"])
def test_another_number_of_processes_goes_on(found: Found, case: str, path: str) -> None:
    equal(found["runs"][f"{case} {path}"])


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_every_image_is_scored_once(found: Found, kind: str) -> None:
    scored = found[kind]["scored"]
    assert set(scored) == {"1", "2", "3", "7", "24"}
    assert all(difference < SINGLE for difference in scored.values()), scored  # logits are fp32


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_what_one_is_refused_all_are_and_it_is_said_once(found: Found, kind: str) -> None:
    assert found[kind]["refused"] == {
        "first": ["said so", "echoed"],
        "second": ["echoed", "said so"],
        "both": ["said so", "echoed"],
        "none": ["went on", "went on"],
    }


@pytest.mark.parametrize("case", ["single-pair", "single-class"])
def test_single_precision_is_equal(found: Found, case: str) -> None:
    difference = found["runs"][f"{case} ddp"]
    assert difference["gradient"] < SINGLE
    assert difference["first loss"] < SINGLE


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_two_processes_autocast_as_one_does(found: Found, kind: str) -> None:
    """Encoders in bf16, which rounds at 2⁻⁹; two processes are nearer to one than bf16 is to fp32.

    Only the first step is compared: later losses also hold what Adam has made of the rounding.
    """
    rounded, difference = found["runs"]["half to single"], found["runs"][f"half-class {kind}"]
    assert rounded["first loss"] > 0  # it was bf16 that ran
    for name in ("first loss", "gradient"):
        assert difference[name] < rounded[name], (name, difference, rounded)


def equal(difference: dict[str, float]) -> None:
    """Everything of two runs: losses, the gradient, the temperature and all weights that were kept."""
    told = dict(difference)
    assert told.pop("accuracy") == 0
    assert told.pop("weight_gap") < SINGLE  # measured in fp32
    assert all(value < EXACT for value in told.values()), told
