"""Whether a data set is on this machine, and which addresses the user of this machine has named.

A run's folder may come from a stranger, who then chooses the addresses in its description. Whoever reads a folder asks
here first: what leaves the machine is read only where the user has named it himself.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from tracer.core.command_line import command_line
from tracer.core.errors import UserError
from tracer.data.formats.hub import PREFIX, SAVED
from tracer.data.formats.memory import PREFIX as MEMORY
from tracer.data.formats.shards import expand_braces
from tracer.data.sources import embedded_name
from tracer.storage.atomic import write_text
from tracer.storage.cache import cache_folder

SCHEME = re.compile(r"[a-z][a-z0-9+.-]+:\S*")  # not one letter, a drive of Windows
HIDDEN = re.compile(r"%([0-9A-Fa-f]{2})")
BLANK = "".join(map(chr, (*range(33), 127, 160, 0xFEFF)))
DECODED = 3  # times that percent signs may hide each other


def leaves_machine(spec: str) -> bool:
    """Whether reading this data set, written as NAME or ROLE=NAME, may ask another machine for something.

    Whatever looks like an address counts as one, however it is spelt: in capitals, with spaces or percent signs, in
    braces, chained as fsspec has it (`a::b`), as a share of a network, or behind another `=`.
    """
    return any(_address(reading) for reading in _readings(spec))


def _readings(spec: str) -> set[str]:
    """The spec, and all that it may stand for."""
    readings = {spec}
    for _ in range(DECODED):
        readings |= {HIDDEN.sub(lambda code: chr(int(code[1], 16)), each) for each in readings}
    for each in tuple(readings):
        with suppress(UserError):
            readings |= set(expand_braces(each))
    readings |= {each[at + 1 :] for each in readings for at, sign in enumerate(each) if sign == "="}
    return {each.strip(BLANK) for each in readings}


def _address(name: str) -> bool:
    small = name.lower()
    if "://" in small or "::" in small or small.startswith(("//", "\\\\")):
        return True
    if small.startswith(PREFIX):
        place = Path(name[len(PREFIX) :])
        return not (
            place.is_file() or any((place / each).is_file() for each in SAVED)
        )  # else it is on this machine
    return bool(SCHEME.fullmatch(small)) and embedded_name(name) is None and not small.startswith(MEMORY)


def remember_named(specs: Iterable[str]) -> None:
    """Note that the user of this machine has named these addresses, so that runs that name them may be read."""
    with suppress(OSError):  # a cache that cannot be written: such runs are then refused
        for spec in filter(leaves_machine, specs):
            write_text(_note(spec), "")


def require_named(specs: Iterable[str], owner: str, *, command: str = "check") -> None:
    """Raise for an address that stands in the description of `owner` and that the user has never named himself.

    `command` is one in which he can.
    """
    for spec in specs:
        if leaves_machine(spec) and not _note(spec).is_file():
            raise UserError(
                f"{owner} names {spec}, which is on another machine, and a folder's own description is not followed "
                f"there: if you know it, name it yourself once, as in: {command_line(command, spec)}"
            )


def _note(spec: str) -> Path:
    digest = hashlib.blake2b(spec.encode(errors="surrogatepass"), digest_size=16)
    return cache_folder() / "named" / digest.hexdigest()
