"""Pictures of every kind whose look is known: what is stored, and what a viewer shows."""

from __future__ import annotations

import struct
import zlib
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np
from PIL import Image, ImageCms

WIDTH, HEIGHT = 48, 32
RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)
ORIENTATION = 0x0112


class Picture(NamedTuple):
    """An image file and the pixels that a viewer shows, up to `tolerance` levels inside of the quarters."""

    file: bytes
    shown: np.ndarray
    tolerance: int = 0

    def check(self, image: Image.Image, more: int = 0) -> None:
        """Raise AssertionError unless an image looks so; its size may be another one."""
        assert image.mode == "RGB"
        pixels = np.asarray(image.resize((WIDTH, HEIGHT), Image.Resampling.NEAREST), int)
        for rows, columns in QUARTERS:
            far = abs(pixels[rows, columns] - self.shown[rows, columns]).max()
            assert far <= self.tolerance + more, (rows, columns, pixels[rows, columns][0, 0], far)


UPPER, LOWER, LEFT, RIGHT = slice(4, 12), slice(20, 28), slice(8, 16), slice(32, 40)
QUARTERS = ((UPPER, LEFT), (UPPER, RIGHT), (LOWER, LEFT), (LOWER, RIGHT))


def quarters(
    upper_left: Any, upper_right: Any, lower_left: Any, lower_right: Any, dtype: Any = np.uint8
) -> np.ndarray:
    """An array of four quarters, each of one value or colour."""
    rows = ((upper_left, upper_right), (lower_left, lower_right))
    small = np.array(rows, dtype)
    return small.repeat(HEIGHT // 2, axis=0).repeat(WIDTH // 2, axis=1)


SEEN = quarters(RED, GREEN, BLUE, (255, 255, 0))
GREYS = quarters(0, 64, 128, 255)


def coloured(grey: np.ndarray) -> np.ndarray:
    return np.repeat(grey[..., None], 3, axis=2)


def encoded(image: Image.Image | np.ndarray, kind: str, **how: Any) -> bytes:
    file = BytesIO()
    (Image.fromarray(image) if isinstance(image, np.ndarray) else image).save(file, kind, **how)
    return file.getvalue()


# What is stored, where the first row and column are seen at the sides that EXIF 2.32 names for the orientation.
STORED = {
    1: lambda seen: seen,  # top, left
    2: lambda seen: seen[:, ::-1],  # top, right
    3: lambda seen: seen[::-1, ::-1],  # bottom, right
    4: lambda seen: seen[::-1],  # bottom, left
    5: lambda seen: seen.swapaxes(0, 1),  # left, top
    6: lambda seen: seen[:, ::-1].swapaxes(0, 1),  # right, top
    7: lambda seen: seen[::-1, ::-1].swapaxes(0, 1),  # right, bottom
    8: lambda seen: seen[::-1].swapaxes(0, 1),  # left, bottom
}
LOSSY: dict[str, dict[str, Any]] = {
    "JPEG": {"quality": 95, "subsampling": 0},
    "MPO": {"quality": 95, "subsampling": 0, "save_all": True},
    "AVIF": {"quality": 95, "subsampling": "4:4:4"},
}
LOSSLESS: dict[str, dict[str, Any]] = {"PNG": {}, "WEBP": {"lossless": True}}


def exif(orientation: int) -> Image.Exif:
    tags = Image.Exif()
    tags[ORIENTATION] = orientation
    return tags


def turned() -> dict[str, Picture]:
    """Every orientation in every format that has one."""
    pictures = {}
    for number, stored in STORED.items():
        pixels = np.ascontiguousarray(stored(SEEN))
        for kind, how in (LOSSY | LOSSLESS).items():
            extra = {"append_images": [Image.fromarray(pixels[::-1])]} if kind == "MPO" else {}
            file = encoded(pixels, kind, exif=exif(number), **how, **extra)
            pictures[f"{kind} {number}"] = Picture(file, SEEN, 8 if kind in LOSSY else 0)
        for compression in ("raw", "tiff_lzw"):
            file = encoded(pixels, "TIFF", tiffinfo={ORIENTATION: number}, compression=compression)
            pictures[f"TIFF {compression} {number}"] = Picture(file, SEEN)
    xmp = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><d tiff:Orientation="6"/></x:xmpmeta>'
    pixels = np.ascontiguousarray(STORED[6](SEEN))
    pictures["JPEG 6 in XMP"] = Picture(encoded(pixels, "JPEG", xmp=xmp, **LOSSY["JPEG"]), SEEN, 8)
    for name, damaged in (("9", exif(9).tobytes()), ("of noise", b"Exif\0\0" + bytes(range(99)))):
        pictures[f"JPEG {name}"] = Picture(encoded(SEEN, "JPEG", exif=damaged, **LOSSY["JPEG"]), SEEN, 8)
    return pictures


def profile(*colorants: tuple[float, float, float], curve: float | None = None) -> bytes:
    """sRGB's profile with other colorants (XYZ under D50), or another gamma."""
    content = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    count = struct.unpack_from(">I", content, 128)[0]
    places = {bytes(content[at : at + 4]): at for at in range(132, 132 + 12 * count, 12)}
    for name, colorant in zip((b"rXYZ", b"gXYZ", b"bXYZ"), colorants, strict=False):
        place = struct.unpack_from(">I", content, places[name] + 4)[0]
        struct.pack_into(">3i", content, place + 8, *(round(65536 * value) for value in colorant))
    if curve is not None:
        tag = b"curv" + bytes(4) + struct.pack(">IH", 1, round(256 * curve)) + bytes(2)
        for name in (b"rTRC", b"gTRC", b"bTRC"):
            struct.pack_into(">II", content, places[name] + 4, len(content), 14)
        content += tag
        struct.pack_into(">I", content, 0, len(content))
    return bytes(content)


DISPLAY_P3 = profile((0.51512, 0.24120, -0.00105), (0.29198, 0.69225, 0.04189), (0.15710, 0.06657, 0.78407))
SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
IN_P3 = quarters(
    (234, 51, 35), (117, 251, 76), (0, 0, 245), (255, 255, 85)
)  # the colours of SEEN in Display P3


def in_colour() -> dict[str, Picture]:
    """Profiles: phones' own, another gamma, sRGB itself, one that does not fit, and noise."""
    linear = quarters(*(tuple(round(255 * (value / 255) ** 2.2) for value in colour) for colour in DIM))
    palette = Image.fromarray(IN_P3).quantize(8)
    clear = np.dstack([IN_P3, quarters(255, 255, 255, 0)])
    on_white = quarters(RED, GREEN, BLUE, WHITE)
    pictures = {
        "JPEG in Display P3": Picture(
            encoded(IN_P3, "JPEG", icc_profile=DISPLAY_P3, **LOSSY["JPEG"]), SEEN, 16
        ),
        "linear PNG": Picture(encoded(linear, "PNG", icc_profile=profile(curve=1.0)), quarters(*DIM), 8),
        "palette in Display P3": Picture(encoded(palette, "PNG", icc_profile=DISPLAY_P3), SEEN, 6),
        "transparent in Display P3": Picture(encoded(clear, "PNG", icc_profile=DISPLAY_P3), on_white, 6),
        "JPEG in Display P3, turned": Picture(
            encoded(
                np.ascontiguousarray(STORED[6](IN_P3)),
                "JPEG",
                icc_profile=DISPLAY_P3,
                exif=exif(6),
                **LOSSY["JPEG"],
            ),
            SEEN,
            16,
        ),
    }
    for kind in ("PNG", "WEBP", "TIFF"):
        how = LOSSLESS.get(kind, {})
        pictures[f"{kind} in Display P3"] = Picture(
            encoded(IN_P3, kind, icc_profile=DISPLAY_P3, **how), SEEN, 6
        )
    for name, given in {"sRGB": SRGB, "noise": bytes(range(256)), "half": DISPLAY_P3[:200]}.items():
        pictures[f"PNG with a profile of {name}"] = Picture(encoded(SEEN, "PNG", icc_profile=given), SEEN)
    pictures["grey with colours' profile"] = Picture(
        encoded(GREYS, "PNG", icc_profile=DISPLAY_P3), coloured(GREYS)
    )
    return pictures


PALE = ((180, 100, 100), (100, 150, 100), (100, 100, 190), (120, 120, 120))
DIM = ((200, 0, 0), (0, 150, 0), (0, 0, 220), (120, 120, 120))


def of_eight_bits() -> dict[str, Picture]:
    """Palettes, transparency, ink, grey, bits, and animations."""
    seen, grey = Image.fromarray(SEEN), Image.fromarray(GREYS)
    holes = quarters(255, 255, 255, 0)
    on_white = quarters(RED, GREEN, BLUE, WHITE)
    rgba = Image.fromarray(np.dstack([SEEN, holes]))
    black_hole = quarters((0, 0, 0, 0), (0, 0, 0, 128), (255, 0, 0, 51), (0, 255, 0, 255))
    laid = quarters(WHITE, (127, 127, 127), (255, 204, 204), GREEN)
    palette = seen.quantize(8)
    one_clear = palette.getpixel((WIDTH - 1, HEIGHT - 1))
    half_clear = bytes(255 if i != one_clear else 0 for i in range(8))
    frames = {"save_all": True, "append_images": [Image.fromarray(SEEN[::-1])], "duration": 100}
    grey_alpha = Image.merge("LA", (grey, Image.fromarray(holes)))
    ink = seen.convert("CMYK")
    pictures = {
        "palette": Picture(encoded(palette, "PNG"), SEEN, 1),
        "palette with a clear colour": Picture(encoded(palette, "PNG", transparency=one_clear), on_white, 1),
        "palette with alpha": Picture(encoded(palette, "PNG", transparency=half_clear), on_white, 1),
        "GIF with a clear colour": Picture(encoded(palette, "GIF", transparency=one_clear), on_white, 1),
        "transparent PNG": Picture(encoded(rgba, "PNG"), on_white),
        "black below transparency": Picture(encoded(black_hole, "PNG"), laid, 1),
        "transparent WebP": Picture(encoded(rgba, "WEBP", lossless=True), on_white),
        "transparent TIFF": Picture(encoded(rgba, "TIFF"), on_white),
        "transparent AVIF": Picture(encoded(rgba, "AVIF", **LOSSY["AVIF"]), on_white, 8),
        "RGB with a clear colour": Picture(encoded(seen, "PNG", transparency=(255, 255, 0)), on_white),
        "grey": Picture(encoded(grey, "PNG"), coloured(GREYS)),
        "grey JPEG": Picture(encoded(grey, "JPEG", quality=95), coloured(GREYS), 4),
        "grey with alpha": Picture(encoded(grey_alpha, "PNG"), coloured(quarters(0, 64, 128, 255))),
        "grey with a clear value": Picture(
            encoded(grey, "PNG", transparency=0), coloured(quarters(255, 64, 128, 255))
        ),
        "one bit": Picture(
            encoded(grey.point(lambda v: 255 * (v > 100), "1"), "PNG"), coloured(quarters(0, 0, 255, 255))
        ),
        "CMYK JPEG, inverted as Adobe does": Picture(encoded(ink, "JPEG", **LOSSY["JPEG"]), SEEN, 8),
        "CMYK TIFF": Picture(encoded(ink, "TIFF"), SEEN),
        "LAB TIFF": Picture(encoded(lab(), "TIFF"), quarters(*PALE), 6),
        "BMP": Picture(encoded(seen, "BMP"), SEEN),
        "PPM": Picture(encoded(seen, "PPM"), SEEN),
        "animated GIF": Picture(encoded(seen, "GIF", **frames), SEEN, 1),
        "animated PNG": Picture(encoded(seen, "PNG", **frames), SEEN),
        "animated WebP": Picture(encoded(seen, "WEBP", lossless=True, **frames), SEEN),
        "pages of TIFF": Picture(
            encoded(seen, "TIFF", save_all=True, append_images=frames["append_images"]), SEEN
        ),
        "16 bits of colour": Picture(png16(257 * SEEN.astype(np.uint16)), SEEN),
        "16 bits of colour, one clear": Picture(
            png16(257 * SEEN.astype(np.uint16), clear=(65535, 65535, 0)), on_white
        ),
    }
    return pictures | turned() | in_colour()


def lab() -> Image.Image:
    colours = Image.fromarray(quarters(*PALE))
    transform = ImageCms.buildTransform(
        ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB"), "RGB", "LAB"
    )
    return ImageCms.applyTransform(colours, transform)


def png16(values: np.ndarray, clear: tuple[int, int, int] | None = None) -> bytes:
    """A PNG of sixteen bits: of [h, w, 3] colours, of [h, w, 4] colours with alpha."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    colour = {3: 2, 4: 6}[values.shape[2]]
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", values.shape[1], values.shape[0], 16, colour, 0, 0, 0))
    key = b"" if clear is None else chunk(b"tRNS", struct.pack(">3H", *clear))
    return b"\x89PNG\r\n\x1a\n" + header + key + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def tiff16(values: np.ndarray, photometric: int, order: str = "<") -> bytes:
    """A plain TIFF of sixteen bits: grey where [h, w], colours where [h, w, 3]."""
    samples = 1 if values.ndim == 2 else values.shape[2]
    data = values.astype(f"{order}u2").tobytes()
    bits_at = 8 + len(data)
    entries = [
        (256, 4, 1, values.shape[1]),
        (257, 4, 1, values.shape[0]),
        (258, 3, samples, 16 if samples == 1 else bits_at),
        (259, 3, 1, 1),
        (262, 3, 1, photometric),
        (273, 4, 1, 8),
        (277, 3, 1, samples),
        (278, 4, 1, values.shape[0]),
        (279, 4, 1, len(data)),
    ]
    body = struct.pack(f"{order}H", len(entries))
    for tag, kind, count, value in entries:
        short = kind == 3 and count == 1
        packed = struct.pack(f"{order}HH", value, 0) if short else struct.pack(f"{order}I", value)
        body += struct.pack(f"{order}HHI", tag, kind, count) + packed
    bits = struct.pack(f"{order}{samples}H", *[16] * samples)
    mark = b"II" if order == "<" else b"MM"
    return mark + struct.pack(f"{order}HI", 42, bits_at + len(bits)) + data + bits + body + bytes(4)


def of_twelve_bits() -> dict[str, Picture]:
    """Files of sixteen and more bits with values up to 4095, as medicine and microscopy have them."""
    values = np.rint(GREYS * (4095 / 255)).astype(np.uint16)
    colours = np.rint(SEEN * (4095 / 255)).astype(np.uint16)
    dim = np.rint(quarters(*DIM) * (4095 / 255)).astype(np.uint16)
    alpha = np.dstack([colours, quarters(65535, 65535, 65535, 0, np.uint16)])
    grey = coloured(GREYS)
    return {
        "PNG": Picture(encoded(values, "PNG"), grey, 1),
        "TIFF": Picture(encoded(values, "TIFF"), grey, 1),
        "compressed TIFF": Picture(encoded(values, "TIFF", compression="tiff_lzw"), grey, 1),
        "TIFF of 32 bits": Picture(encoded(values.astype(np.int32), "TIFF"), grey, 1),
        "TIFF of floats": Picture(encoded(values.astype(np.float32), "TIFF"), grey, 1),
        "TIFF, white is zero": Picture(tiff16(4095 - values, 0), grey, 1),
        "TIFF, large end first": Picture(tiff16(values, 1, ">"), grey, 1),
        "colours": Picture(png16(colours), SEEN, 1),
        "dim colours": Picture(png16(dim), quarters(*DIM), 1),
        "colours with alpha": Picture(png16(alpha), quarters(RED, GREEN, BLUE, WHITE), 1),
        "colours in TIFF": Picture(tiff16(dim, 2), quarters(*DIM), 1),
        "colours in TIFF, large end first": Picture(tiff16(dim, 2, ">"), quarters(*DIM), 1),
        "of eight bits": Picture(encoded(SEEN, "PNG"), SEEN),
        "darker": Picture(encoded(values // 16, "PNG"), coloured(np.rint(GREYS / 16).astype(np.uint8)), 1),
    }


def of_floats() -> dict[str, Picture]:
    """Floating values up to 1, one image with nothing above a quarter."""
    values = (GREYS / 255).astype(np.float32)
    with_nan = values.copy()
    with_nan[0, 0] = np.nan
    return {
        "TIFF": Picture(encoded(values, "TIFF"), coloured(GREYS), 1),
        "compressed TIFF": Picture(encoded(values, "TIFF", compression="tiff_lzw"), coloured(GREYS), 1),
        "a quarter": Picture(encoded(values / 4, "TIFF"), coloured(np.rint(GREYS / 4).astype(np.uint8)), 1),
        "with NaN": Picture(encoded(with_nan, "TIFF"), coloured(GREYS), 1),
    }


SETS = {"8 bits": of_eight_bits, "12 bits": of_twelve_bits, "floats": of_floats}
WHITES = {"8 bits": 65535.0, "12 bits": 4095.0, "floats": 1.0}  # two of the first have 16 bits
