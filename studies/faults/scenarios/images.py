"""Images: corrupt, truncated, huge, CMYK, 16-bit, animated, empty, and files that are not images."""

from __future__ import annotations

import io
import struct
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
from PIL import Image

from studies.faults.process import run_command
from studies.faults.scenarios.damaged import flipped
from studies.faults.verdict import Verdict, lost, refused, survived
from studies.faults.workspace import Workspace, difference
from tracer.core.errors import UserError
from tracer.data.scan import scan
from tracer.data.sources import load

GOOD = 120  # images beside the bad one: less than 1 % may be unreadable
SIZE = (24, 20)


def trials(workspace: Workspace) -> Iterator[Verdict]:
    """A readable image has the right pixels; an unreadable one is reported and left out of the data."""
    folder = workspace.new_path("images")
    for label in ("a", "b"):
        (folder / label).mkdir(parents=True)
        for i in range(GOOD // 2):
            _plain(i).save(folder / label / f"{i:03d}.png")
    for what, (content, expected) in _unusual().items():
        yield _judged(folder, what, content, expected)
    cmyk = _encoded(_plain(7).convert("CMYK"), "JPEG")
    yield _judged(folder, "CMYK JPEG", cmyk, None)
    for what, content in _broken().items():
        yield _left_out(folder, what, content)
    kinds = ("JPEG", "PNG", "GIF", "TIFF", "WEBP", "BMP", "PPM")
    for number in range(workspace.count(40, 500)):
        kind = kinds[number % len(kinds)]
        yield _judged(
            folder,
            f"{kind} with damage {number}",
            _damaged(_encoded(_plain(number), kind), workspace.rng),
            None,
        )
    yield _trains(workspace)


def _plain(shade: int) -> Image.Image:
    pixels = np.random.default_rng(shade).integers(0, 256, (SIZE[1], SIZE[0], 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def _encoded(image: Image.Image, kind: str, **how: object) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **how)
    return file.getvalue()


def _damaged(content: bytes, rng: Random) -> bytes:
    for _ in range(rng.randint(1, 8)):
        content = flipped(content, rng)
    return content[: rng.randrange(1, len(content))] if rng.random() < 0.4 else content


def _unusual() -> dict[str, tuple[bytes, np.ndarray]]:
    """Unusual but valid images, and their pixels."""
    base, pixels = _plain(7), np.asarray(_plain(7))
    cmyk = base.convert("CMYK")
    deep = np.arange(SIZE[0] * SIZE[1], dtype=np.uint16).reshape(SIZE[::-1]) * 137
    grey = np.rint(deep.astype(np.float64) * 255 / 65535).astype(np.uint8)
    grey = np.repeat(grey[..., None], 3, axis=2)
    frames = [Image.new("RGB", SIZE, colour) for colour in ("red", "lime", "blue")]
    red = np.asarray(frames[0])
    half = Image.new("RGBA", SIZE, (0, 0, 0, 0))
    return {
        "CMYK TIFF": (_encoded(cmyk, "TIFF"), np.asarray(cmyk.convert("RGB"))),
        "16-bit PNG": (_encoded(Image.fromarray(deep), "PNG"), grey),
        "16-bit TIFF": (_encoded(Image.fromarray(deep), "TIFF"), grey),
        "animated GIF": (_encoded(frames[0], "GIF", save_all=True, append_images=frames[1:]), red),
        "animated PNG": (_encoded(frames[0], "PNG", save_all=True, append_images=frames[1:]), red),
        "animated WebP": (
            _encoded(frames[0], "WEBP", save_all=True, append_images=frames[1:], lossless=True),
            red,
        ),
        "transparent PNG": (_encoded(half, "PNG"), np.full_like(pixels, 255)),
        "1-bit PNG": (_encoded(Image.new("1", SIZE, 1), "PNG"), np.full_like(pixels, 255)),
        "palette PNG": (_encoded(frames[1].convert("P"), "PNG"), np.asarray(frames[1])),
        "float TIFF with NaN and infinity": (
            _encoded(Image.fromarray(np.full(SIZE[::-1], np.nan, np.float32)), "TIFF"),
            np.zeros_like(pixels),
        ),
        "BMP": (_encoded(base, "BMP"), pixels),
    }


def _broken() -> dict[str, bytes]:
    """What is no image, or too much of one."""
    photo = _encoded(_plain(3), "JPEG")
    return {
        "zero bytes": b"",
        "one byte": b"\xff",
        "a page instead of an image": b"<!doctype html><title>404</title>",
        "half a JPEG": photo[: len(photo) // 2],
        "the header of a JPEG": photo[:20],
        "zeros": bytes(4096),
        "a PNG that says it holds 900 million pixels": _bomb(30_000, 30_000),
        "a PNG that says it holds 10^18 pixels": _bomb(2**31 - 1, 2**31 - 1),
        "a text": "ein Bild".encode("utf-16"),
    }


def _bomb(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(bytes(99)))
        + chunk(b"IEND", b"")
    )


def _read(folder: Path, content: bytes) -> np.ndarray | str:
    """The pixels of an image among good ones, or the message with which it was left out."""
    bad = folder / "a" / "bad.png"  # the content decides how it is decoded, not the name
    bad.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        images = scan(load(folder))
        if "a/bad.png" in images.ids:
            return np.asarray(images.images[list(images.ids).index("a/bad.png")])
    (message,) = images.skipped
    if len(images) != GOOD or not message.startswith("a/bad.png: "):
        raise AssertionError(f"{len(images)} images left, {message}")
    return message


def _judged(folder: Path, what: str, content: bytes, expected: np.ndarray | None) -> Verdict:
    """The pixels must be the expected ones; where damage may have changed a pixel, at least three channels."""
    try:
        pixels = _read(folder, content)
    except UserError as error:  # broken where the scan does not decode; the error still names the file
        return refused(what) if "bad.png" in str(error) else lost(what, str(error))
    if isinstance(pixels, str):
        return refused(what) if expected is None else lost(what, pixels)
    if expected is None:
        return survived(what) if pixels.ndim == 3 and pixels.shape[2] == 3 else lost(what, str(pixels.shape))
    same = pixels.shape == expected.shape and np.abs(pixels.astype(int) - expected.astype(int)).max() <= 1
    return survived(what) if same else lost(what, "other pixels than were stored")


def _left_out(folder: Path, what: str, content: bytes) -> Verdict:
    pixels = _read(folder, content)
    return refused(what) if isinstance(pixels, str) else lost(what, f"read as {pixels.shape}")


def _trains(workspace: Workspace) -> Verdict:
    """A run on data with a broken image equals the run on the same data without it."""
    folder, what = workspace.folder / "trials" / "images", "training beside a broken image"
    runs = []
    for name, content in (("with", b"broken"), ("without", None)):
        bad = folder / "a" / "bad.png"
        bad.unlink(missing_ok=True)
        if content is not None:
            bad.write_bytes(content)
        out = workspace.new_path(name)
        result = run_command(workspace.train_arguments(out, data=folder, steps=2))
        if result.code:
            return lost(what, result.tail)
        runs.append(out)
    wrong = difference(*runs)
    return lost(what, wrong) if wrong else survived(what)
