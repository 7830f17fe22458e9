"""Brace expansion as in a shell: `shard-{000..011}.tar`, `{train,extra}.tar`."""

from __future__ import annotations

import re

from tracer.core.errors import UserError

BRACES = re.compile(r"\{([^{}]*)\}")
LIMIT = 1_000_000  # shards in one range


def expand_braces(pattern: str) -> list[str]:
    """All names that the pattern stands for, in order."""
    match = BRACES.search(pattern)
    if match is None:
        return [pattern]
    before, after = pattern[: match.start()], expand_braces(pattern[match.end() :])
    return [f"{before}{middle}{rest}" for middle in _choices(match[1], pattern) for rest in after]


def _choices(inside: str, pattern: str) -> list[str]:
    """The alternatives of one pair of braces: a list, or a range that keeps leading zeros."""
    first, dots, last = inside.partition("..")
    if not dots:
        return inside.split(",")
    if not (re.fullmatch(r"[0-9]{1,9}", first) and re.fullmatch(r"[0-9]{1,9}", last)):
        raise UserError(f"{pattern}: the range {{{inside}}} must go from a number to a number")
    start, stop = int(first), int(last)
    if not 0 <= stop - start < LIMIT:
        raise UserError(f"{pattern}: the range {{{inside}}} must count up, over less than {LIMIT:,} shards")
    width = max(len(first), len(last)) if first.startswith("0") or last.startswith("0") else 0
    return [f"{number:0{width}d}" for number in range(start, stop + 1)]
