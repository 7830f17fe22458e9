"""Tar shards with ways out of their folder, links, devices, lies about sizes, and damage."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

from PIL import Image

from studies.faults.kinds.damaged import flipped
from studies.faults.site import Site, tree
from studies.faults.verdict import Verdict, lost, refused, survived
from tracer.core.errors import UserError
from tracer.data.examples import Examples
from tracer.data.scan import scan
from tracer.data.sources import load

SECRET = b"a secret that lies outside"


def trials(site: Site) -> Iterator[Verdict]:
    """Nothing is written, nothing outside is read, and what is told of a shard is what it holds."""
    folder = site.fresh("shards")
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
        path.write_bytes(_lie(size))
        yield _judged(folder, path, f"a member that says it has {size} bytes", refusal=True)
    whole = _tar({"1.png": _png(), "1.txt": b"one", "2.png": _png(), "2.txt": b"two"})
    for number in range(site.some(30, 1500)):
        harmed = flipped(whole[:6144], site.rng) + whole[6144:]
        cut = site.rng.randrange(512, len(whole)) if number % 2 else len(harmed)
        path.write_bytes(harmed[:cut])
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


def _lie(size: int) -> bytes:
    """A header that claims more than there is."""
    member = tarfile.TarInfo("1.png")
    member.size = size
    return member.tobuf(tarfile.GNU_FORMAT) + _tar({"2.png": _png(), "2.txt": b"two"})


def _judged(folder: Path, path: Path, what: str, *, refusal: bool = False) -> Verdict:
    before = tree(folder)
    try:
        found = scan(load(path, label="none"))
        leaked = SECRET.decode() in repr(list(found.captions)) or _outside(found)
    except UserError as error:
        clear = "s.tar" in str(error) and tree(folder) == before
        return refused(what) if clear else lost(what, str(error))
    except Exception as error:  # noqa: BLE001  (the very thing that is looked for)
        return lost(what, f"{type(error).__name__}: {error}")
    if leaked or tree(folder) != before:
        return lost(what, "something was read or written outside of the shard")
    return lost(what, f"taken as {found.ids}") if refusal else survived(what)


def _outside(found: Examples) -> bool:
    """Whether an image has other pixels than the red that was packed."""
    sizes = {found.images[i].size for i in range(len(found))}
    return not sizes <= {(4, 3)}
