"""Hypothesis strategies for the parsers: valid input with changes, damaged bytes, and arbitrary values."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from studies.faults.workspace import Workspace
from tracer.methods.base import methods, options

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def mutated(value: dict[str, Any]) -> st.SearchStrategy[Any]:
    """A valid object with some entries replaced, removed or added; or an arbitrary value."""
    names = st.sampled_from(sorted(value)) | st.text(max_size=6)
    changes = st.dictionaries(names, json_values, max_size=3)
    without = st.sets(st.sampled_from(sorted(value)), max_size=2)
    likely = st.builds(lambda c, w: {k: v for k, v in {**value, **c}.items() if k not in w}, changes, without)
    return likely | json_values


def texts_like(value: dict[str, Any]) -> st.SearchStrategy[bytes]:
    """The object as JSON bytes, mutated or damaged, and arbitrary bytes."""
    written = mutated(value).map(lambda each: json.dumps(each).encode())
    return written | damaged(json.dumps(value, indent=1).encode()) | st.binary(max_size=40)


def damaged(content: bytes) -> st.SearchStrategy[bytes]:
    """The content with one byte changed, or cut off."""
    places = st.integers(0, len(content) - 1)

    def change(place: int, bits: int) -> bytes:
        return content[:place] + bytes([content[place] ^ bits]) + content[place + 1 :]

    return st.builds(change, places, st.integers(0, 255)) | places.map(lambda place: content[:place])


def method_options() -> st.SearchStrategy[dict[str, Any]]:
    """Names of real method options with arbitrary values."""
    known = sorted({option.name for name in methods() for option in options(name)})
    return st.dictionaries(st.sampled_from(known), json_values, max_size=2)


def log_lines(log: Path) -> st.SearchStrategy[bytes]:
    """A damaged log, or lines of JSON that are not log entries."""
    whole = log.read_bytes()
    return damaged(whole) | st.lists(json_values.map(json.dumps), max_size=5).map(
        lambda x: "\n".join(x).encode()
    )


def state_files() -> st.SearchStrategy[bytes | None]:
    """Contents of a state file of a sweep; None if it is missing."""
    return (
        st.none()
        | st.binary(max_size=20)
        | mutated({"steps": 4, "step": 2}).map(lambda x: json.dumps(x).encode())
    )


def headers() -> st.SearchStrategy[bytes]:
    """Safetensors files whose header is wrong about names, dtypes, shapes, offsets or its own size."""
    dtypes = st.sampled_from(["F32", "I64", "BF16", "BOOL", "F99"]) | json_values
    numbers = st.integers(-2, 40) | st.integers()
    entry = st.fixed_dictionaries(
        {
            "dtype": dtypes,
            "shape": st.lists(numbers, max_size=3),
            "data_offsets": st.lists(numbers, max_size=3),
        }
    )
    header = st.dictionaries(st.text(max_size=4), entry | json_values, max_size=3)
    body = st.binary(max_size=48)

    def file(value: Any, size: int | None, data: bytes) -> bytes:
        text = json.dumps(value).encode()
        return struct.pack("<Q", len(text) if size is None else size % 2**64) + text + data

    return st.builds(file, header, st.none() | st.integers(), body) | body


def npz_archive() -> bytes:
    """An .npz file of two small images with labels."""
    file = io.BytesIO()
    np.savez(file, images=np.zeros((2, 4, 4, 3), np.uint8), labels=np.arange(2))
    return file.getvalue()


def export_config(workspace: Workspace) -> dict[str, Any]:
    """The config file that lies beside exported weights."""
    return {
        "model_cfg": json.loads(workspace.model.read_text()),
        "preprocess_cfg": {"size": 28},
        "weights_digest": "0",
    }
