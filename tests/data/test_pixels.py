from __future__ import annotations

from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from tracer.data.encoded import rgb


def reopened(image: Image.Image, kind: str, **how) -> Image.Image:
    file = BytesIO()
    image.save(file, kind, **how)
    return Image.open(file)


def corner(image: Image.Image) -> tuple[int, ...]:
    assert image.mode == "RGB"
    return tuple(np.asarray(image)[0, 0].tolist())


def test_sixteen_bits_are_scaled_not_clipped():
    values = np.array([[0, 257, 32768, 65535]], np.uint16)
    for kind in ("PNG", "TIFF"):
        pixels = np.asarray(rgb(reopened(Image.fromarray(values), kind)))
        assert pixels[0, :, 0].tolist() == [0, 1, 128, 255]
        assert (pixels == pixels[..., :1]).all()


def test_deep_integers_and_floats():
    assert np.asarray(rgb(Image.fromarray(np.array([[0, 65535]], np.int32))))[0, :, 0].tolist() == [0, 255]
    assert np.asarray(rgb(Image.fromarray(np.array([[7, 255]], np.int32))))[0, :, 0].tolist() == [7, 255]
    floats = np.array([[0, 0.5, 1, np.nan, 1.2]], np.float32)
    assert np.asarray(rgb(Image.fromarray(floats)))[0, :, 0].tolist() == [0, 128, 255, 0, 255]


@pytest.mark.parametrize("highest", [1, 255, 65535])
def test_floats_keep_their_contrast_whatever_their_range(highest, tmp_path):
    values = (np.linspace(0, 1, 6).reshape(2, 3) * highest).astype(np.float32)
    Image.fromarray(values).save(tmp_path / "x.tif")
    with Image.open(tmp_path / "x.tif") as image:
        assert image.mode == "F"
        assert np.asarray(rgb(image))[..., 0].tolist() == [[0, 51, 102], [153, 204, 255]]


@pytest.mark.parametrize("mode", ["RGBA", "LA", "PA"])
def test_what_is_transparent_lies_on_white(mode):
    clear = Image.new("RGBA", (2, 2), (0, 0, 0, 0))
    assert corner(rgb(clear.convert(mode))) == (255, 255, 255)


def test_half_transparent_red_is_pink():
    assert corner(rgb(Image.new("RGBA", (1, 1), (255, 0, 0, 51)))) == (255, 204, 204)


def test_a_palette_with_a_transparent_colour():
    image = Image.new("P", (2, 1))
    image.putpalette([255, 0, 0, 0, 0, 255])
    image.putpixel((1, 0), 1)
    for transparency in (0, b"\x00\xff"):
        converted = rgb(reopened(image, "PNG", transparency=transparency))
        assert np.asarray(converted)[0].tolist() == [[255, 255, 255], [0, 0, 255]]


def test_cmyk_is_ink_on_paper():
    image = Image.new("CMYK", (8, 8), (0, 255, 255, 0))
    assert corner(rgb(image)) == (255, 0, 0)
    red, green, blue = corner(rgb(reopened(image, "JPEG", quality=100)))
    assert red > 250 > 5 > max(green, blue)


def test_the_first_frame_of_an_animation():
    frames = [Image.new("RGB", (2, 2), colour) for colour in ("red", "blue")]
    animated = reopened(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert animated.n_frames == 2
    assert corner(rgb(animated)) == (255, 0, 0)


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "YCbCr", "HSV", "LAB", "RGBX"])
def test_every_other_mode_is_what_pillow_makes_of_it(mode):
    image = Image.new("RGB", (2, 2), (250, 250, 250)).convert("RGB")
    image = image if mode == "LAB" else image.convert(mode)
    assert corner(rgb(image)) == corner(image.convert("RGB"))
