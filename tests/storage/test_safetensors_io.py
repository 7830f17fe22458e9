"""A file of tensors or of words is what was written, or says that it is not."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Literal

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tracer.core.errors import UserError
from tracer.core.validation import fits
from tracer.core.weights import check_finite
from tracer.storage.atomic import write_folder
from tracer.storage.checksum import add_checksum, verify_checksum
from tracer.storage.safetensors_io import read_weights, tensors_blake2b, write_weights

WEIGHTS = {
    "matrix": torch.arange(6.0).view(2, 3),
    "half": torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
    "count": torch.tensor(7),
    "none": torch.zeros(0, 3),
}


def test_every_flipped_bit_is_noticed(tmp_path: Path) -> None:
    """All bits of the values, and of the header those that still leave a file that can be read."""
    file = tmp_path / "w.safetensors"
    write_weights(file, WEIGHTS)
    found = read_weights(file)
    assert all(found[name].equal(tensor) for name, tensor in WEIGHTS.items())
    whole = file.read_bytes()
    for place in range(len(whole)):
        for bit in range(8):
            file.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << bit)]) + whole[place + 1 :])
            try:
                found = read_weights(file)
            except UserError:
                continue
            same = found.keys() == WEIGHTS.keys() and all(found[name].equal(WEIGHTS[name]) for name in found)
            assert same, f"bit {bit} of byte {place}"


def test_the_checksum_depends_on_names_dtypes_shapes_and_values_but_not_on_order() -> None:
    assert tensors_blake2b(WEIGHTS) == tensors_blake2b(dict(reversed(WEIGHTS.items())))
    others = [
        {**WEIGHTS, "more": torch.zeros(1)},
        {**WEIGHTS, "matrix": WEIGHTS["matrix"].view(3, 2)},
        {**WEIGHTS, "count": torch.tensor(7, dtype=torch.int32)},
        {**WEIGHTS, "count": torch.tensor(8)},
    ]
    assert len({tensors_blake2b(WEIGHTS), *map(tensors_blake2b, others)}) == 5


def test_equal_weights_make_equal_files(tmp_path: Path) -> None:
    for name in "ab":
        write_weights(tmp_path / name, WEIGHTS)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_what_the_disk_refuses_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(OSError) as caught:
        write_folder(tmp_path / "run", lambda folder: write_weights(folder / "missing" / "w", WEIGHTS))
    assert caught.value.errno == errno.ENOENT


@given(st.dictionaries(st.text(max_size=5), st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)))
def test_an_object_with_a_checksum_comes_back_and_a_changed_one_does_not(value: dict[str, object]) -> None:
    value.pop("digest", None)
    whole = add_checksum(value)
    assert verify_checksum(json.dumps(whole)) == value
    assert verify_checksum(json.dumps(value)) == value  # written before checksums existed
    with pytest.raises(ValueError, match="does not match its digest"):
        verify_checksum(json.dumps({**whole, "a new one": 1}))


@pytest.mark.parametrize("text", ["[]", "3", "null", "", "{", "[" * 100_000])
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        verify_checksum(text)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_weights_that_are_no_numbers_are_named(value: float) -> None:
    check_finite(WEIGHTS, what="the weights")
    broken = {**WEIGHTS, "half": torch.tensor([0.0, value], dtype=torch.bfloat16)}
    with pytest.raises(UserError, match="the weights are not finite: half holds"):
        check_finite(broken, what="the weights")


@pytest.mark.parametrize(
    ("value", "hint", "right"),
    [
        *((1, int, True), (1, float, True), (1.5, int, False), (True, int, False), (True, float, False)),
        *(("a", str, True), (None, str | None, True), (3, str | None, False), (True, bool, True)),
        *(("x", Literal["x", "y"], True), ("z", Literal["x", "y"], False), ([], Literal["x"], False)),
        *((["a"], tuple[str, ...], True), ([1], tuple[str, ...], False), ("ab", tuple[str, ...], False)),
        *(({}, dict[str, int], True), ([], dict[str, int], False)),
    ],
)
def test_values_fit_their_annotations(value: object, hint: object, right: bool) -> None:
    assert fits(value, hint) is right
