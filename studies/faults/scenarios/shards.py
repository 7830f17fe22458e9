"""Tar shards with paths that leave their folder, links, devices, wrong sizes, and damage."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

from PIL import Image

from studies.faults.scenarios.damaged import flipped
from studies.faults.verdict import Verdict, lost, refused, survived
from studies.faults.workspace import Workspace, file_hashes
from tracer.core.errors import UserError
from tracer.data.examples import Examples
from tracer.data.scan import scan
from tracer.data.sources import load

SECRET = b"a secret that lies outside"


def trials(workspace: Workspace) -> Iterator[Verdict]:
    """Nothing is written, nothing outside the shard is read, and its contents are read correctly or refused."""
    folder = workspace.new_path("shards")
    (folder / "inside").mkdir(parents=True)
    (folder / "secret.txt").write_bytes(SECRET)
    path = folder / "inside" / "s.tar"
    for name in ("../1.png", "/etc/1.png", "a/../../1.png", "..", "../../../../tmp/1.png", "./../1.png"):
        for format_ in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
            path.write_bytes(_tar({name: _png(), "2.png": _png(), "2.txt": b"two"}, format_))
            yield _judged(folder, path, f"{name!r} in format {format_}", refusal=True)
    deep = "/".join(["x" * 90] * 3) + "/../../../../../out.png"
    path.write_bytes(_tar({deep: _png(), "2.png": _png(), "2.txt": b"two"}, tarfile.GNU_FORMAT))
    yield _judged(folder, path, "a long name that leads out", refusal=True)
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE):
        for target in ("../secret.txt", str(folder / "secret.txt"), "2.png"):
            path.write_bytes(
                _tar(
                    {"2.png": _png(), "2.txt": b"two"},
                    links={"1.txt": (kind, target), "1.png": (kind, target)},
                )
            )
            yield _judged(folder, path, f"a member of type {kind!r} to {target}")
    for size in (1 << 20, 1 << 33, 8**11 - 1):
        path.write_bytes(_wrong_size(size))
        yield _judged(folder, path, f"a member that says it has {size} bytes", refusal=True)
    whole = _tar({"1.png": _png(), "1.txt": b"one", "2.png": _png(), "2.txt": b"two"})
    for number in range(workspace.count(30, 1500)):
        damaged = flipped(whole[:6144], workspace.rng) + whole[6144:]
        cut = workspace.rng.randrange(512, len(whole)) if number % 2 else len(damaged)
        path.write_bytes(damaged[:cut])
        yield _judged(folder, path, f"damage {number}")


def _png() -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (4, 3), "red").save(file, "PNG")
    return file.getvalue()


def _tar(
    members: dict[str, bytes],
    format_: int = tarfile.GNU_FORMAT,
    links: dict[str, tuple[bytes, str]] | None = None,
) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=format_) as shard:
        for name, (kind, target) in (links or {}).items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, target
            shard.addfile(member)
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            shard.addfile(member, io.BytesIO(content))
    return file.getvalue()


def _wrong_size(size: int) -> bytes:
    """A tar whose first member claims more bytes than there are."""
    member = tarfile.TarInfo("1.png")
    member.size = size
    return member.tobuf(tarfile.GNU_FORMAT) + _tar({"2.png": _png(), "2.txt": b"two"})


def _judged(folder: Path, path: Path, what: str, *, refusal: bool = False) -> Verdict:
    before = file_hashes(folder)
    try:
        examples = scan(load(path, label="none"))
        leaked = SECRET.decode() in repr(list(examples.captions)) or _outside(examples)
    except UserError as error:
        clear = "s.tar" in str(error) and file_hashes(folder) == before
        return refused(what) if clear else lost(what, str(error))
    except Exception as error:  # noqa: BLE001  (any other exception counts as a lost input)
        return lost(what, f"{type(error).__name__}: {error}")
    if leaked or file_hashes(folder) != before:
        return lost(what, "something was read or written outside of the shard")
    return lost(what, f"read as {examples.ids}") if refusal else survived(what)


def _outside(examples: Examples) -> bool:
    """Whether an image has another size than the ones in the shard."""
    sizes = {examples.images[i].size for i in range(len(examples))}
    return not sizes <= {(4, 3)}
