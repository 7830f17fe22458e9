"""Read and write safetensors files with a checksum in the metadata, so that a flipped bit is noticed on reading."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from tracer.core.errors import UserError
from tracer.core.weights import Weights

# The only metadata entry: safetensors writes several in arbitrary order, and equal weights should give equal files.
CHECKSUM = "seal"


def write_weights(path: Path, tensors: Mapping[str, Tensor], *, checksum: bool = True) -> None:
    """Write named tensors; `checksum=False` for files whose checksum is stored elsewhere.

    Within `write_file` or `write_folder`, which turn errors of the library into those of the system.
    """
    on_cpu = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    metadata = {CHECKSUM: tensors_blake2b(on_cpu)} if checksum else {"format": "pt"}
    save_file(on_cpu, path, metadata=metadata)


def read_weights(path: Path) -> Weights:
    """The tensors of a safetensors file, on the CPU. Raises UserError if they do not match the file's checksum."""
    try:
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (not a mapping)
            expected = (file.metadata() or {}).get(CHECKSUM)
    except FileNotFoundError:
        raise UserError(f"no weights at {path}") from None
    except (SafetensorError, OSError, ValueError, RuntimeError) as error:
        raise UserError(f"{path} is not a readable safetensors file: {error}") from None
    if expected is not None and expected != tensors_blake2b(tensors):
        raise UserError(f"{path} is damaged: its tensors do not match its checksum")
    return tensors


def weights_blake2b(path: Path) -> str:
    """The checksum of the tensors in a file, from its header if that has it."""
    try:
        with safe_open(path, "pt") as file:
            stored = (file.metadata() or {}).get(CHECKSUM)
    except (SafetensorError, OSError, ValueError) as error:
        raise UserError(f"{path} is not a readable safetensors file: {error}") from None
    return stored or tensors_blake2b(read_weights(path))


def tensors_blake2b(tensors: Mapping[str, Tensor]) -> str:
    """BLAKE2b hash of names, dtypes, shapes and values; the order of the tensors does not matter."""
    blake2b = hashlib.blake2b(digest_size=16)
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        blake2b.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        blake2b.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return blake2b.hexdigest()


def file_blake2b(file: Path) -> str:
    """BLAKE2b hash of a file's bytes."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
