"""Where all of MNIST comes from: a folder of idx files, an archive of one, or the network."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

from tracer.data.idx import FILES
from tracer.errors import UserError

FIRST = FILES["train"][0][0]


def located(given: Path, unpacked: Path) -> Path:
    """The folder with the idx files: `given`, a folder in it, its content put into `unpacked`, or a download."""
    if given.is_file():
        try:
            shutil.unpack_archive(given, unpacked, filter=None if given.suffix == ".zip" else "data")
        except (shutil.ReadError, OSError, ValueError, tarfile.TarError) as error:
            raise UserError(f"{given} is no archive that can be unpacked: {error}") from error
        given = unpacked
    elif not given.exists():
        _download(given)
    found = sorted(file.parent for file in given.rglob(f"{FIRST}*") if file.name in (FIRST, f"{FIRST}.gz"))
    if not found:
        raise UserError(f"{given} holds no {FIRST}: give a folder or an archive with MNIST's four idx files")
    return found[0]


def _download(folder: Path) -> None:
    """Through torchvision, which knows the mirrors; what arrives is verified where it is read."""
    from torchvision.datasets import MNIST

    try:
        MNIST(folder, download=True)
    except (RuntimeError, OSError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise UserError(f"{folder} does not exist and MNIST cannot be downloaded into it: {error}") from error
