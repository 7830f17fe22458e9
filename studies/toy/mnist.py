"""Find all of MNIST: in a folder of idx files, in an archive of one, or by download."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

from tracer.core.errors import UserError
from tracer.data.formats.idx import FILES

NAMES = [name for split in FILES.values() for name, _ in split]
EXPECTED = f"a folder or an archive with {', '.join(NAMES)} (plain or .gz), or a folder to download them to"


def find_mnist(path: Path, unpacked: Path) -> Path:
    """The folder of the idx files below `path`, which may be an archive (unpacked to `unpacked`) or downloaded to."""
    searched = path
    if path.is_file():
        try:
            shutil.unpack_archive(path, unpacked, filter=None if path.suffix == ".zip" else "data")
        except (shutil.ReadError, OSError, ValueError, tarfile.TarError) as error:
            raise UserError(
                f"--full {path} is no archive that can be unpacked ({error}); expected: {EXPECTED}"
            ) from error
        searched = unpacked
    elif _needs_download(path):
        _download(path)
    folders = sorted(folder for folder, names in _files(searched).items() if names.issuperset(NAMES))
    if not folders:
        present = sorted(set().union(*_files(searched).values()))
        raise UserError(
            f"--full {path} holds {', '.join(present) or 'no file of MNIST'}; expected: {EXPECTED}"
        )
    return folders[0]


def _files(path: Path) -> dict[Path, set[str]]:
    """The MNIST files in each folder below `path`."""
    files: dict[Path, set[str]] = {}
    for file in path.rglob("*-ubyte*"):
        if (name := file.name.removesuffix(".gz")) in NAMES:
            files.setdefault(file.parent, set()).add(name)
    return files


def _needs_download(path: Path) -> bool:
    """Whether none of the files is there, or only some of an interrupted download."""
    files = _files(path)
    stopped = path / "MNIST" / "raw"
    return not files or (files.keys() == {stopped} and not files[stopped].issuperset(NAMES))


def _download(folder: Path) -> None:
    """Download by torchvision, which resumes and tries mirrors; the files are verified when they are read."""
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
