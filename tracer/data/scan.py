"""Read every image before training starts: unreadable ones are reported and left out, and each content is hashed.

What is found in a file is kept in the user's cache folder, so that no file is decoded twice. An entry holds for a file
with the same path, size, inode and times. Losing the cache costs time and nothing else.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tracer.core.errors import UserError
from tracer.data.classes import visible
from tracer.data.encoded import HASH_SIZE, Encoded, content, hash_image
from tracer.data.examples import Examples, Images, Pixels, origin, with_white
from tracer.data.formats.arrays import UNREADABLE
from tracer.storage.atomic import write_bytes
from tracer.storage.cache import cache_folder, write_listing
from tracer.storage.images import BROKEN, measure, range_of_file, reason
from tracer.storage.levels import OVERSHOOT, Range, white_level

TOLERATED = 0.01  # share of unreadable images; more of them point to another problem
THREADS = 8
BLOCK = 1024  # images between two reports of progress
SAVE_EVERY = 200  # blocks between two writes of the cache, so that a scan that is stopped is not lost
LIMIT = 20_000_000  # entries of one cache; if there are more, those of earlier scans are forgotten
SECOND = 1_000_000_000  # in nanoseconds
TICK = SECOND // 20  # a file may change twice within it and keep its times
# Of the cache. The range of values is NaN where an image has eight bits.
ENTRY = np.dtype(
    [("signature", f"V{HASH_SIZE}"), ("content", f"V{HASH_SIZE}"), *((name, "f8") for name in Range._fields)]
)
SAMPLED = 16  # images of a test set that are looked at, to see whether they have more than eight bits
DARK = 0.02  # mean value of an image relative to white, below which it looks black

Progress = Callable[[int, int], None]  # images done, images in total


class Finding(NamedTuple):
    """A hash of an image's content, why it cannot be decoded (empty if it can), and its range if it has more than
    eight bits."""

    content: bytes
    problem: str = ""
    range: Range | None = None


def scan(
    examples: Examples,
    strict: bool = False,
    progress: Progress | None = None,
    *,
    skip_unreadable: bool = False,
) -> Examples:
    """The examples whose images can be decoded, with `contents`; `Examples.skipped` lists the others.

    Images of more than eight bits get one white level for all, unless they have one.

    Raises UserError for data that cannot be trained on, for any unreadable image if `strict`, and if more than 1 % are
    unreadable unless `skip_unreadable`. Files that have not changed since an earlier scan are not decoded again.
    """
    validate(examples)
    if strict and skip_unreadable:
        raise UserError(
            "--strict stops at an unreadable image and --skip-unreadable does not: give one of them"
        )
    if examples.contents is not None:
        return examples
    findings = _findings(examples.images, progress)
    whole = _with_contents(examples, findings)
    broken = np.array([bool(each.problem) for each in findings], bool)
    if not broken.any():
        return whole
    names = tuple(f"{examples.ids[i]}: {findings[i].problem}" for i in np.flatnonzero(broken).tolist())
    if strict or (len(names) > TOLERATED * len(examples) and not skip_unreadable):
        raise _unreadable(examples, names, strict)
    readable = replace(whole.take(np.flatnonzero(~broken)), skipped=(*examples.skipped, *names))
    validate(readable)
    return readable


def hashed(examples: Examples) -> Examples:
    """The examples with `contents` and a white level, whatever is wrong with them; files that were scanned before are
    not read again."""
    return examples if examples.contents is not None else _with_contents(examples, _findings(examples.images))


def with_level(examples: Examples) -> Examples:
    """The examples with a white level, if a few of them tell that there are images of more than eight bits."""
    few = np.unique(np.linspace(0, len(examples) - 1, min(SAMPLED, len(examples))).astype(int)).tolist()
    if examples.white_level is not None or not any(_is_deep(examples.images, index) for index in few):
        return examples
    return hashed(examples)


def _is_deep(images: Images, index: int) -> bool:
    with suppress(*BROKEN):  # which is told when it is decoded
        encoded = content(images, index)
        return encoded is not None and range_of_file(encoded) is not None
    return False


def _with_contents(examples: Examples, findings: list[Finding]) -> Examples:
    hashes = np.frombuffer(b"".join(each.content for each in findings), np.uint8)
    whole = replace(examples, contents=hashes.reshape(-1, HASH_SIZE))
    return levelled(whole, [each.range for each in findings if each.range is not None])


def levelled(examples: Examples, ranges: list[Range]) -> Examples:
    """The examples with the white level that the ranges of their images of more than eight bits ask for.

    One that they have already stays. What it is, and whether it looks wrong, is among the notes and warnings.
    """
    if not ranges:
        return examples
    white = examples.white_level or white_level(ranges)
    assert white is not None
    lowest, highest = min(each.lowest for each in ranges), max(each.highest for each in ranges)
    here = f"{len(ranges)} images of more than eight bits"
    note = f"white level: {white:g}, in {here} with values up to {highest:g}"
    advice = "--white-level sets another"
    warnings = []
    if float(np.median([each.mean for each in ranges])) < DARK * white:
        warnings.append(f"{examples.name}: {here} are almost black where white is {white:g}: {advice}")
    most = OVERSHOOT if white == 1 else white
    if highest > most:
        above = sum(each.highest > most for each in ranges)
        reach = f"{above} of {here} have values above {white:g}, up to {highest:g}"
        warnings.append(f"{examples.name}: {reach}, and those become white: {advice}")
    if lowest < 0:
        below = f"{sum(each.lowest < 0 for each in ranges)} of {here} have values below 0, down to {lowest:g}"
        warnings.append(f"{examples.name}: {below}, and those become black: add a constant if they are meant")
    return replace(
        examples,
        images=with_white(examples.images, white),
        detected=(*examples.detected, note),
        warnings=(*examples.warnings, *warnings),
    )


def validate(examples: Examples) -> None:
    """Raise UserError if the data cannot be trained on. Images are not read."""
    name, classes = examples.name, examples.classes
    if not len(examples):
        raise UserError(f"there are no images in {name}")
    strange = "".join(f"; {each}" for each in examples.warnings)  # which may be the cause
    if not examples.labelled and not examples.captioned:
        problem = "has neither classes nor captions: put its images in one folder a class"
        raise UserError(f"{name} {problem}{strange}")
    if examples.captioned:
        empty = [not texts for texts in examples.captions]
        _refuse(examples, empty, "an empty caption", "--caption-column none takes class names instead")
    if not examples.labelled:
        return
    if len(classes) == 1 and not examples.captioned:
        raise UserError(f"{name} has one class only, {classes[0]!r}: there is nothing to tell apart{strange}")
    _refuse(examples, examples.labels == -1, "no label", "--label-column none takes captions alone")
    outside = (examples.labels < 0) | (examples.labels >= len(classes))
    _refuse(examples, outside, f"a label outside the {len(classes)} classes", "labels count from 0")
    nameless = [i for i, each in enumerate(classes) if not visible(each).strip()]
    if nameless:
        raise UserError(f"class {nameless[0]} of {name} has an empty name")
    foreign = [each for each in classes if each.encode(errors="ignore").decode() != each]
    if foreign:  # it would stand in prompts
        raise UserError(
            f"the class {foreign[0]!r} of {name} is not UTF-8: rename its folder, or name it with --classes FILE"
        )


def _refuse(examples: Examples, wrong: np.ndarray | list[bool], what: str, advice: str) -> None:
    """Raise UserError if any example is `wrong`, with their number and the first one."""
    indices = np.flatnonzero(wrong)
    if len(indices):
        count = f"{len(indices)} of {len(examples)} images in {examples.name} have {what}"
        raise UserError(f"{count}, for example {examples.ids[indices[0]]}: {advice}")


def _unreadable(examples: Examples, names: tuple[str, ...], strict: bool) -> UserError:
    """The error for unreadable images: the first ones, a file with all of them, and the flag to go on without them."""
    limit = "" if strict else f", more than {TOLERATED:.0%}"
    share = f"{len(names)} of {len(examples)} images ({len(names) / len(examples):.1%}{limit})"
    shown = "".join(f"\n  {name}" for name in names[:5])
    if len(names) > 5:
        shown += f"\n  … {write_listing('unreadable', examples.name, names)}".rstrip()
    advice = "" if strict else "\n--skip-unreadable leaves them out"
    return UserError(f"{share} in {examples.name} cannot be read:{shown}{advice}")


def _findings(images: Images, progress: Progress | None = None) -> list[Finding]:
    """What is found in each image, from the cache where the file has not changed."""
    cache = ScanCache(images)
    findings: list[Finding] = []
    with ThreadPoolExecutor(THREADS) as pool:
        # Pixels in memory are hashed faster without threads.
        look = map if isinstance(images, Pixels) else pool.map
        for start in range(0, len(images), BLOCK):
            block = range(start, min(start + BLOCK, len(images)))
            findings += look(cache.find, block)
            if progress is not None:
                progress(block.stop, len(images))
            if block.stop == len(images) or (start // BLOCK) % SAVE_EVERY == SAVE_EVERY - 1:
                cache.save()
    return findings


class ScanCache:
    """Findings for the local files of one folder, by the signature of the file; others are looked at each time."""

    def __init__(self, images: Images) -> None:
        self.images = images
        source, _ = origin(images, 0) if len(images) else (images, 0)
        folder = source.place if isinstance(source, Encoded) else None
        name = hashlib.blake2b(os.fsencode(folder or ""), digest_size=HASH_SIZE).hexdigest()
        self.path = None if folder is None else cache_folder() / "scans" / f"{name}.npz"
        self.findings = {} if self.path is None else _read(self.path)
        self._new: dict[bytes, Finding] = {}

    def find(self, index: int) -> Finding:
        """What an earlier scan found in an image, else what is found now."""
        source, place = origin(self.images, index)
        key = signature(*source.file(place)) if self.path and isinstance(source, Encoded) else None
        earlier = self.findings.get(key) if key else None
        finding = earlier or _look(self.images, index)
        if key and not earlier:
            self._new[key] = finding
        return finding

    def save(self) -> None:
        """Keep new findings on disk, if the folder can be written."""
        if self.path is None or not self._new:
            return
        both = self.findings | self._new
        self.findings, self._new = both if len(both) <= LIMIT else self._new, {}
        # The readable files first, then the others with their problems.
        items = sorted(self.findings.items(), key=lambda item: bool(item[1].problem))
        none = (np.nan,) * len(Range._fields)
        files = np.array([(key, each.content, *(each.range or none)) for key, each in items], ENTRY)
        problems = np.array([finding.problem for _, finding in items if finding.problem], np.str_)
        buffer = BytesIO()
        np.savez(buffer, files=files, problems=problems)
        with suppress(OSError):
            write_bytes(self.path, buffer.getvalue())


def _read(path: Path) -> dict[bytes, Finding]:
    """The findings in a cache file; none if there is no such file, or if it is damaged."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            files, problems = (
                archive["files"].astype(ENTRY, casting="equiv").tolist(),
                archive["problems"].tolist(),
            )
        texts = [""] * (len(files) - len(problems)) + problems
        return {
            key: Finding(digest, text, None if np.isnan(values[0]) else Range(*values))
            for (key, digest, *values), text in zip(files, texts, strict=True)
        }
    except UNREADABLE:
        return {}


def _look(images: Images, index: int) -> Finding:
    """Read and decode an image. Pixels in memory are hashed and nothing else."""
    digest, values = bytes(HASH_SIZE), None
    try:
        encoded = content(images, index)
        digest = hash_image(images, index, encoded)
        if encoded is not None:
            values = measure(encoded)
    except BROKEN as error:
        return Finding(digest, reason(error))
    return Finding(digest, range=values)


def signature(file: Path, part: str) -> bytes | None:
    """A hash of path, size, inode and times of a file; None if it is missing, or so new that it may change unseen."""
    try:
        status = file.stat()
    except (OSError, ValueError):
        return None
    latest = max(status.st_mtime_ns, status.st_ctime_ns)
    coarse = latest % SECOND == 0  # some file systems round times to one or two seconds
    if time.time_ns() - latest < (2 * SECOND if coarse else TICK):
        return None
    identity = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev)
    described = os.fsencode(file) + repr((part, identity)).encode()
    return hashlib.blake2b(described, digest_size=HASH_SIZE).digest()
