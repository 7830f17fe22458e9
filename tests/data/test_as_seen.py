"""What a model gets is the picture that a viewer shows: every kind of picture, through every entrance."""

from __future__ import annotations

import sys
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import asdict
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from pictures import HEIGHT, LOSSY, SEEN, SETS, SRGB, STORED, WHITES, WIDTH, Picture, encoded, exif
from PIL import Image, ImageFile
from posting import posted

from tracer.core.errors import UserError
from tracer.data.encoded import Files
from tracer.data.examples import Examples
from tracer.data.formats.memory import from_object, register
from tracer.data.pack import pack
from tracer.data.scan import scan, with_level
from tracer.data.sources import load
from tracer.data.split import divide
from tracer.data.transforms import Transform
from tracer.models.open_clip_compat import open_clip
from tracer.storage import images as module
from tracer.storage.images import read, seen
from tracer.storage.levels import Range, white_level

Pictures = Mapping[str, Picture]


@pytest.fixture(scope="module")
def pictures() -> dict[str, dict[str, Picture]]:
    return {name: make() for name, make in SETS.items()}


def files(pictures: Pictures, folder: Path) -> list[Path]:
    """The pictures in two class folders; a decoder goes by the content, whatever the name."""
    paths = [folder / "photos" / "ab"[i % 2] / f"{i:03d}.png" for i in range(len(pictures))]
    for path, picture in zip(paths, pictures.values(), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(picture.file)
    return paths


def from_folder(pictures: Pictures, folder: Path) -> Examples:
    files(pictures, folder)
    return load(folder / "photos")


def from_table(pictures: Pictures, folder: Path) -> Examples:
    rows = [f"{path},{path.parent.name}\n" for path in files(pictures, folder)]
    (folder / "photos.csv").write_text("".join(["filepath,label\n", *rows]))
    return load(folder / "photos.csv")


def from_shard(pictures: Pictures, folder: Path) -> Examples:
    with tarfile.open(folder / "photos.tar", "w") as shard:
        for i, picture in enumerate(pictures.values()):
            for ending, content in (("jpg", picture.file), ("cls", "ab"[i % 2].encode())):
                member = tarfile.TarInfo(f"{i:03d}.{ending}")
                member.size = len(content)
                shard.addfile(member, BytesIO(content))
    return load(folder / "photos.tar")


def dataset(pictures: Pictures) -> Any:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["a", "b"])})
    rows = {
        "image": [{"bytes": each.file, "path": None} for each in pictures.values()],
        "label": [i % 2 for i in range(len(pictures))],
    }
    return datasets.Dataset.from_dict(rows, features=features)


def from_hub(pictures: Pictures, folder: Path) -> Examples:
    dataset(pictures).save_to_disk(folder / "saved")
    return load(f"hf:{folder / 'saved'}")


def from_parquet(pictures: Pictures, folder: Path) -> Examples:
    dataset(pictures).to_parquet(folder / "photos.parquet")
    return load(folder / "photos.parquet")


def from_opened(pictures: Pictures, folder: Path) -> Examples:
    labels = [i % 2 for i in range(len(pictures))]
    opened = [Image.open(BytesIO(each.file)) for each in pictures.values()]
    return from_object(list(zip(opened, labels, strict=True)), ["a", "b"])


ENTRANCES: dict[str, Callable[[Pictures, Path], Examples]] = {
    "folder": from_folder,
    "table": from_table,
    "shard": from_shard,
    "Parquet": from_parquet,
    "data set of the hub": from_hub,
    "data set from Python": lambda pictures, _: from_object(dataset(pictures)),
    "data set from Python, formatted": lambda pictures, _: from_object(
        dataset(pictures).with_format("torch")
    ),
    "images from Python": from_opened,
    "paths from Python": lambda pictures, folder: from_object(files(pictures, folder)),
}


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("entrance", ENTRANCES)
def test_every_picture_is_what_a_viewer_shows(
    entrance: str, kind: str, pictures: dict[str, dict[str, Picture]], tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setenv("TRACER_CACHE", str(tmp_path / "cache"))
    examples = scan(ENTRANCES[entrance](pictures[kind], tmp_path))
    assert len(examples) == len(pictures[kind])
    assert examples.white_level == WHITES[kind]
    names = list(pictures[kind])
    if entrance == "folder":  # first those of class a, then those of class b
        names = names[::2] + names[1::2]
    wrong = []
    for index, name in enumerate(names):
        image = examples.images[index]
        try:
            assert image.size == (WIDTH, HEIGHT)
            pictures[kind][name].check(image)
        except AssertionError as error:
            wrong.append((name, str(error)))
    assert not wrong


@pytest.mark.parametrize("kind", SETS)
def test_what_follows_gets_the_same_picture(
    kind: str, pictures: dict[str, dict[str, Picture]], tmp_path: Path, shared_student
) -> None:
    """Batches, drafts, packed files, thumbnails, and what a model makes of a file that Pillow opened."""
    own, level = pictures[kind], WHITES[kind]
    examples = scan(from_table(own, tmp_path))
    transform = Transform(shared_student.preprocess_cfg, "crop+flip", drafts=True)
    pack(examples, tmp_path / "packed.tar", lossless=True)
    packed = load(tmp_path / "packed.tar")
    shared_student.white_level = level
    try:
        for index, picture in enumerate(own.values()):
            picture.check(packed.images[index])
            expected = transform.batch([seen(Image.fromarray(picture.shown))], [0])[0].int()
            got = transform.batch(examples.images, [index])[0].int()
            assert (got - expected).abs().float().mean() <= picture.tolerance + 1
            plain = Image.open(BytesIO(picture.file))
            served = shared_student.preprocess(plain)
            assert torch.equal(served, shared_student.pixels(got[None].to(torch.uint8)))
            assert torch.equal(shared_student.preprocess(examples.images[index]), served), (
                "it is applied once"
            )
    finally:
        shared_student.white_level = None


def test_nothing_is_left_to_apply_and_the_image_of_the_user_stays() -> None:
    stored = np.ascontiguousarray(STORED[6](SEEN))
    image = Image.open(BytesIO(encoded(stored, "PNG", exif=exif(6), icc_profile=SRGB)))
    shown = seen(image)
    assert np.array_equal(np.asarray(shown), SEEN)
    assert np.array_equal(np.asarray(seen(shown)), SEEN)
    assert np.array_equal(np.asarray(image), stored)
    assert image.getexif()[0x0112] == 6
    assert not shown.info


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "YCbCr", "HSV", "CMYK", "RGBX", "I", "F"])
def test_an_image_of_any_mode_that_was_made_in_memory(mode: str) -> None:
    grey = Image.new("RGB", (2, 2), (255, 255, 255)).convert("L").convert(mode if mode in "1LIF" else "RGB")
    image = grey if mode in "1LIF" else grey.convert(mode)
    assert np.asarray(seen(image, 255)).tolist() == [[[255] * 3] * 2] * 2


@pytest.mark.parametrize("mode", ["RGBA", "LA", "PA", "RGBa", "La"])
def test_what_is_clear_is_white(mode: str) -> None:
    clear = Image.new("RGBA", (2, 2), (0, 0, 0, 0))
    image = clear.convert("LA").convert(mode) if mode == "La" else clear.convert(mode)
    assert np.asarray(seen(image)).tolist() == [[[255] * 3] * 2] * 2


def photograph(turn: int, width: int, height: int) -> tuple[bytes, bytes]:
    """A smooth picture as a JPEG that is stored upright, and one that is stored in another way."""
    coarse = np.random.default_rng(0).integers(256, size=(7, 9, 3), dtype=np.uint8)
    upright = Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)
    stored = np.ascontiguousarray(STORED[turn](np.asarray(upright)))
    return encoded(upright, "JPEG", quality=95), encoded(stored, "JPEG", quality=95, exif=exif(turn))


@pytest.mark.parametrize("turn", STORED)
def test_a_draft_is_turned_and_shows_the_same_window(turn: int, tmp_path: Path) -> None:
    """With sides that no factor divides, so that the reduced image is a part of a pixel too long at one end."""
    for name, content in zip("ab", photograph(turn, 501, 379), strict=True):
        (tmp_path / f"{name}.jpg").write_bytes(content)
    images = Files(tmp_path, ("a.jpg", "b.jpg"))
    draft = images.draft(1, (78, 78))
    assert (draft.stored, draft.times) == ((501, 379), 4)
    assert draft.image.size == (126, 95)
    settings = asdict(open_clip.transform.PreprocessCfg(size=32))
    pixels = [
        Transform(settings, "crop+flip", drafts=drafts).batch(
            images, [i, i], map(np.random.default_rng, (3, 4))
        )
        for i, drafts in ((0, False), (1, True))
    ]
    assert (
        pixels[0].float() - pixels[1].float()
    ).abs().mean() < 0.9  # levels of 255; 1.5 with a shift by one pixel of four


def test_a_jpeg_that_lies_on_its_side_is_reduced_by_its_own_sides() -> None:
    upright, stored = photograph(6, 240, 640)
    assert read(stored, least=(60, 160))[1:3] == read(upright, least=(60, 160))[1:3] == ((240, 640), 4)


def test_plain_jpegs_cost_what_they_did(monkeypatch) -> None:
    """One decoding and one copy into RGB, no conversion of colours, no turn."""
    counts: dict[str, int] = {}

    def counted(owner: Any, name: str) -> None:
        function = getattr(owner, name)

        def call(*args: Any, **how: Any) -> Any:
            counts[name] = counts.get(name, 0) + 1
            return function(*args, **how)

        monkeypatch.setattr(owner, name, call)

    file = encoded(SEEN, "JPEG", icc_profile=SRGB, exif=exif(1), **LOSSY["JPEG"])
    read(file)  # the profile is looked at once
    for owner, name in (
        (ImageFile.ImageFile, "load"),
        (Image.Image, "copy"),
        (Image.Image, "transpose"),
        (module.ImageCms.ImageCmsTransform, "apply"),
    ):
        counted(owner, name)
    assert np.array_equal(np.asarray(read(file).image), np.asarray(Image.open(BytesIO(file)).copy()))
    assert counts.pop("load") <= 5  # calls; pixels are decoded by the first one
    assert counts == {"copy": 2}, "the second one is that of this test"


def test_a_white_level_is_that_of_all_images_and_of_every_split(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("TRACER_CACHE", str(tmp_path / "cache"))
    for split, highest in (("train", 4000), ("val", 900), ("test", 150)):
        for label in "ab":
            for i in range(2):
                path = tmp_path / "photos" / split / label / f"{i}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                least = 2 * i + (label == "b")
                Image.fromarray(np.linspace(least, highest, 48, dtype=np.uint16).reshape(6, 8)).save(path)
    division = divide(str(tmp_path / "photos"))
    assert division.train.white_level == division.held_out.white_level == 4095
    assert np.asarray(division.held_out.images[0]).max() == round(900 * 255 / 4095)
    said = "white level: 4095, in 4 images of more than eight bits with values up to 4000"
    assert said in division.train.detected
    assert said in divide(str(tmp_path / "photos")).train.detected, "from the cache of scans"
    alone = with_level(load(tmp_path / "photos", split="test"))
    assert alone.white_level == 255
    trained = scan(load(tmp_path / "photos", split="test", white_level=4095))
    assert trained.white_level == 4095
    assert trained.digests["images"] != scan(alone).digests["images"], "other pixels are other data"
    with pytest.raises(UserError, match=r"white level -1 must be a number above 0"):
        load(tmp_path / "photos", white_level=-1)


@pytest.mark.parametrize(
    ("highest", "white"),
    [
        (0, 1),
        (0.3, 1),
        (1.2, 1),
        (3.5, 7),
        (200, 255),
        (256, 1023),
        (4095, 4095),
        (4096, 16383),
        (65535, 65535),
        (65536, 131071),
    ],
)
def test_the_white_level_has_as_many_bits_as_the_largest_value(highest: float, white: float) -> None:
    assert white_level([Range(0, 0, 0), Range(0, highest, 0)]) == white
    assert white_level([]) is None


@pytest.mark.parametrize(
    ("values", "white", "said"),
    [
        ([3, 60000], None, "almost black where white is 65535"),
        ([900, 4000], 255.0, "4 of 4 images of more than eight bits have values above 255, up to 4001"),
        ([-9, 900], None, "4 of 4 images of more than eight bits have values below 0, down to -9"),
        ([900, 4000], None, ""),
    ],
)
def test_a_range_that_looks_wrong_is_said(
    values: list[int], white: float | None, said: str, tmp_path: Path
) -> None:
    pixels = np.full((20, 20), values[0], np.int32)
    pixels[0, 0] = values[1]
    for i in range(4):
        (tmp_path / "ab"[i % 2]).mkdir(exist_ok=True)
        Image.fromarray(pixels + i % 2 * (values[0] > 100)).save(tmp_path / "ab"[i % 2] / f"{i}.tif")
    examples = scan(load(tmp_path, white_level=white))
    assert [each for each in examples.detected if each.startswith("white level")]
    warned = [each for each in examples.warnings if "eight bits" in each]
    assert said in "".join(warned)
    assert bool(said) == bool(warned)


def test_images_from_python_share_a_white_level_too() -> None:
    deep = [Image.fromarray(np.full((4, 4), value, np.uint16)) for value in (4000, 500)]
    examples = from_object(list(zip(deep, ["dark", "bright"], strict=True)))
    assert [int(np.asarray(examples.images[i]).max()) for i in range(2)] == [249, 31]
    low_bit = [deep[0], Image.fromarray(np.full((4, 4), 501, np.uint16))]
    assert register(list(zip(low_bit, ["dark", "bright"], strict=True))) != register(examples)
    assert np.asarray(posted(examples.images)[1]).max() == 31


def container(brand: bytes, content: bytes) -> bytes:
    """A file of the family of HEIC."""
    return (20).to_bytes(4, "big") + b"ftyp" + brand + bytes(4) + b"mif1" + content


def test_heic_names_its_decoder_and_is_read_where_it_is_installed(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "IMG_1.HEIC").write_bytes(container(b"heic", encoded(SEEN, "PNG")))
    images = Files(tmp_path, ("IMG_1.HEIC",))
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    with pytest.raises(UserError, match=r"IMG_1\.HEIC cannot be read: it is HEIC.*pip install pillow-heif"):
        images[0]
    for label in "ab":
        (tmp_path / "photos" / label).mkdir(parents=True)
        (tmp_path / "photos" / label / "1.heic").write_bytes(container(b"heic", label.encode()))
    with pytest.raises(UserError, match=r"(?s)2 of 2 images .*a/1\.heic: it is HEIC.*pillow-heif"):
        scan(load(tmp_path / "photos"))

    class Stub(ImageFile.ImageFile):
        format = "HEIF"

        def _open(self) -> None:
            assert self.fp is not None
            with Image.open(BytesIO(self.fp.read()[20:])) as inside:
                self._mode, self._size = inside.mode, inside.size
                self.im = inside.convert("RGB").im

    decoder = ModuleType("pillow_heif")
    vars(decoder)["register_heif_opener"] = lambda: Image.register_open("HEIF", Stub, lambda prefix: True)
    monkeypatch.setitem(sys.modules, "pillow_heif", decoder)
    try:
        assert np.array_equal(np.asarray(images[0]), SEEN)
    finally:
        Image.OPEN.pop("HEIF", None)
        Image.ID.remove("HEIF")


def test_avif_names_what_is_missing(monkeypatch) -> None:
    monkeypatch.setattr(module.features, "check", lambda name: False)
    with pytest.raises(OSError, match=r"AVIF.*pip install --upgrade pillow"):
        read(encoded(SEEN, "AVIF"))


def test_an_image_that_is_too_large_says_its_size_the_limit_and_what_to_do(
    tmp_path: Path, monkeypatch
) -> None:
    (tmp_path / "huge.png").write_bytes(encoded(SEEN, "PNG"))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 500)
    with pytest.raises(
        UserError, match=r"huge\.png .*: it has 1,536 pixels, and at most 1,000 are read: make it smaller"
    ):
        Files(tmp_path, ("huge.png",))[0]
    monkeypatch.setattr("tracer.data.encoded.LARGEST", 50)
    with pytest.raises(
        UserError, match=r"huge\.png .*: it has [\d,]+ bytes, and at most 50 are read: make it smaller"
    ):
        Files(tmp_path, ("huge.png",))[0]
