"""Tensors in safetensors files, with a seal by which a flipped bit is noticed when they are read again."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from tracer.core.errors import UserError
from tracer.core.weights import Weights

SEAL = "seal"  # the only metadata: two entries would come in any order, and equal weights make equal files


def write_weights(path: Path, tensors: Mapping[str, Tensor], *, add_checksum: bool = True) -> None:
    """Write named tensors, under a seal unless their digest is kept elsewhere; a disk that refuses is an OSError."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    try:
        save_file(plain, path, metadata={SEAL: seal(plain)} if add_checksum else {"format": "pt"})
    except SafetensorError as error:  # its writer is not Python's, and puts the system's number into words
        number = re.search(r"os error (\d+)", str(error))
        code = int(number[1]) if number else None
        raise OSError(code, os.strerror(code) if code else str(error), str(path)) from error


def read_weights(path: Path) -> Weights:
    """The tensors of a safetensors file, on the CPU; one that does not match its seal is refused."""
    try:
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (not a mapping)
            expected = (file.metadata() or {}).get(SEAL)
    except FileNotFoundError:
        raise UserError(f"no weights at {path}") from None
    except (SafetensorError, OSError, ValueError, RuntimeError) as error:
        raise UserError(f"{path} is not a readable safetensors file: {error}") from None
    if expected is not None and expected != seal(tensors):
        raise UserError(f"{path} is damaged: its tensors do not match the seal they were written under")
    return tensors


def seal(tensors: Mapping[str, Tensor]) -> str:
    """A hash of names, types, shapes and bytes, in any order."""
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        digest.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def digest(file: Path) -> str:
    """A hash of a file's bytes."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
