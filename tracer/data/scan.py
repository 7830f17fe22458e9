"""Read every image before training starts: unreadable ones are reported and left out, and each content is hashed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

import numpy as np

from tracer.core.errors import UserError
from tracer.data.checking.check import validate
from tracer.data.encoded import BROKEN, content, decode, file, place, reason
from tracer.data.examples import Examples, Images, Pixels
from tracer.data.hashing import SIZE, hash_bytes, hash_pixels
from tracer.data.scan_cache import Finding, ScanCache, cache_folder, signature
from tracer.storage.atomic import write_text

TOLERATED = 0.01  # share of unreadable images; more of them point to another problem
THREADS = 8
BLOCK = 1024  # images between two reports of progress
SAVE_EVERY = 200  # blocks between two writes of the cache, so that a scan that is stopped is not lost

Progress = Callable[[int, int], None]  # images done, images in total


def scan(
    examples: Examples,
    strict: bool = False,
    progress: Progress | None = None,
    *,
    skip_unreadable: bool = False,
) -> Examples:
    """The examples whose images can be decoded, with `contents`; `Examples.skipped` lists the others.

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
    contents = np.frombuffer(b"".join(each.content for each in findings), np.uint8).reshape(-1, SIZE)
    whole = replace(examples, contents=contents)
    broken = np.array([bool(each.problem) for each in findings], bool)
    if not broken.any():
        return whole
    names = tuple(
        f"{name}: {each.problem}" for name, each in zip(examples.ids, findings, strict=True) if each.problem
    )
    if strict or (len(names) > TOLERATED * len(examples) and not skip_unreadable):
        raise _unreadable(examples, names, strict)
    readable = replace(whole.take(np.flatnonzero(~broken)), skipped=(*examples.skipped, *names))
    validate(readable)
    return readable


def hashed(examples: Examples) -> Examples:
    """The examples with `contents`, whatever is wrong with them; files that were scanned before are not read again."""
    if examples.contents is not None:
        return examples
    findings = _findings(examples.images, None)
    contents = np.frombuffer(b"".join(each.content for each in findings), np.uint8).reshape(-1, SIZE)
    return replace(examples, contents=contents)


def _unreadable(examples: Examples, names: tuple[str, ...], strict: bool) -> UserError:
    """The error for unreadable images: the first ones, a file with all of them, and the flag to go on without them."""
    limit = "" if strict else f", more than {TOLERATED:.0%}"
    share = f"{len(names)} of {len(examples)} images ({len(names) / len(examples):.1%}{limit})"
    shown = "".join(f"\n  {name}" for name in names[:5])
    if len(names) > 5:
        digest = hashlib.blake2b(examples.name.encode(errors="replace"), digest_size=4).hexdigest()
        path = cache_folder() / f"unreadable-{digest}.txt"
        shown += "\n  …"
        with suppress(OSError):
            write_text(path, "".join(f"{name}\n" for name in names).encode(errors="replace").decode())
            shown += f" all are listed in {path}"
    advice = "" if strict else "\n--skip-unreadable leaves them out"
    return UserError(f"{share} in {examples.name} cannot be read:{shown}{advice}")


def _findings(images: Images, progress: Progress | None) -> list[Finding]:
    """What is found in each image, from the cache where the file has not changed."""
    folder = place(images)
    cache = ScanCache(folder) if folder is not None else None
    findings: list[Finding] = []
    new: list[tuple[bytes | None, Finding]] = []

    def find(index: int) -> tuple[bytes | None, Finding, bool]:
        key = signature(*file(images, index)) if cache is not None else None
        earlier = cache.get(key) if cache is not None else None
        return key, earlier or _look(images, index), earlier is None

    with ThreadPoolExecutor(THREADS) as pool:
        for start in range(0, len(images), BLOCK):
            block = range(start, min(start + BLOCK, len(images)))
            # Pixels in memory are hashed faster without threads.
            for key, finding, fresh in (
                map(find, block) if isinstance(images, Pixels) else pool.map(find, block)
            ):
                findings.append(finding)
                if fresh:
                    new.append((key, finding))
            if progress is not None:
                progress(block.stop, len(images))
            last = block.stop == len(images)
            if cache is not None and (last or (start // BLOCK) % SAVE_EVERY == SAVE_EVERY - 1):
                cache.add(new)
                new = []
    return findings


def _look(images: Images, index: int) -> Finding:
    """Read and decode an image. Pixels in memory are hashed and nothing else."""
    try:
        encoded = content(images, index)
        if encoded is not None:
            digest = hash_bytes(encoded)
            try:
                decode(encoded)
            except BROKEN as error:
                return Finding(digest, reason(error))
            return Finding(digest)
        return Finding(hash_pixels(images, index))
    except BROKEN as error:
        return Finding(bytes(SIZE), reason(error))
