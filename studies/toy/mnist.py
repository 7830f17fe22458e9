"""Where all of MNIST comes from: a folder of idx files, an archive of one, or the network."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

from tracer.core.errors import UserError
from tracer.data.idx import FILES

NAMES = [name for split in FILES.values() for name, _ in split]
EXPECTED = f"a folder or an archive with {', '.join(NAMES)} (plain or .gz), or a folder to download them to"


def located(given: Path, unpacked: Path) -> Path:
    """The folder with the idx files: `given`, a folder in it, its content put into `unpacked`, or a download."""
    searched = given
    if given.is_file():
        try:
            shutil.unpack_archive(given, unpacked, filter=None if given.suffix == ".zip" else "data")
        except (shutil.ReadError, OSError, ValueError, tarfile.TarError) as error:
            raise UserError(
                f"--full {given} is no archive that can be unpacked ({error}); expected: {EXPECTED}"
            ) from error
        searched = unpacked
    elif _awaits_download(given):
        _download(given)
    found = sorted(folder for folder, names in _held(searched).items() if names.issuperset(NAMES))
    if not found:
        there = sorted(set().union(*_held(searched).values()))
        raise UserError(
            f"--full {given} holds {', '.join(there) or 'no file of MNIST'}; expected: {EXPECTED}"
        )
    return found[0]


def _held(given: Path) -> dict[Path, set[str]]:
    """Which of the files lie in which folder, however deep."""
    found: dict[Path, set[str]] = {}
    for file in given.rglob("*-ubyte*"):
        if (name := file.name.removesuffix(".gz")) in NAMES:
            found.setdefault(file.parent, set()).add(name)
    return found


def _awaits_download(given: Path) -> bool:
    """Whether none of the files is there, or some only that a stopped download has left where it puts them."""
    held = _held(given)
    stopped = given / "MNIST" / "raw"
    return not held or (held.keys() == {stopped} and not held[stopped].issuperset(NAMES))


def _download(folder: Path) -> None:
    """Through torchvision, which knows the mirrors and mends what is cut; what arrives is verified where it is read."""
    from torchvision.datasets import MNIST

    new = not folder.exists()
    try:
        MNIST(folder, download=True)
    except (RuntimeError, OSError) as error:
        if new:
            shutil.rmtree(folder, ignore_errors=True)
        raise UserError(
            f"--full {folder} holds no MNIST and it cannot be downloaded ({error}); expected: {EXPECTED}"
        ) from error
