"""Evaluation pixels equal open_clip's, and random crops have the documented distribution."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tracer.core.errors import UserError
from tracer.data.encoded import Files, draft
from tracer.data.examples import Pixels
from tracer.data.transforms import Transform
from tracer.models.open_clip_compat import open_clip
from tracer.storage.images import Draft, seen


def settings(**changed: Any) -> dict[str, Any]:
    return asdict(open_clip.transform.PreprocessCfg(size=32)) | changed


def picture(height: int, width: int, mode: str = "RGB") -> Image.Image:
    noise = np.random.default_rng(height * width).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(noise).convert(mode)


def plane(height: int, width: int) -> Image.Image:
    """Red is the horizontal position, green the vertical one: a crop shows where it was taken."""
    x = np.broadcast_to(np.linspace(0, 255, width), (height, width))
    y = np.broadcast_to(np.linspace(0, 255, height)[:, None], (height, width))
    return Image.fromarray(np.stack([x, y, x * 0], axis=2).astype(np.uint8))


@pytest.mark.parametrize("size", [32, (32, 32), (24, 40)], ids=str)
@pytest.mark.parametrize("resize_mode", ["shortest", "longest", "squash"])
@pytest.mark.parametrize("interpolation", ["bicubic", "bilinear"])
@pytest.mark.parametrize(
    ("height", "width", "mode"), [(50, 41, "RGB"), (20, 90, "L"), (64, 64, "RGBA"), (33, 32, "P")]
)
def test_pixels_are_open_clip_s(
    size, resize_mode: str, interpolation: str, height: int, width: int, mode: str
) -> None:
    """Bit for bit, after scaling and normalisation as in ToTensor and Normalize, of the picture that is seen."""
    config = settings(size=size, resize_mode=resize_mode, interpolation=interpolation)
    theirs: Any = open_clip.transform.image_transform_v2(
        open_clip.transform.PreprocessCfg(**config), is_train=False
    )
    image = picture(height, width, mode)
    ours = Transform(config)(image)
    assert ours.dtype == torch.uint8
    mean, std = (torch.tensor(config[key]).view(3, 1, 1) for key in ("mean", "std"))
    assert torch.equal((ours.float() / 255 - mean) / std, theirs(seen(image)))


def test_images_in_memory_go_the_same_way() -> None:
    """Images of the target size are not changed; others are resized like files."""
    for side in (32, 40):
        array = np.random.default_rng(side).integers(0, 256, (5, side, side, 3), dtype=np.uint8)
        transform = Transform(settings())
        alone = torch.stack([transform(Image.fromarray(array[i])) for i in (3, 0, 4)])
        assert torch.equal(transform.batch(Pixels(array), np.array([3, 0, 4])), alone)
        if side == 32:
            assert np.array_equal(alone[0].permute(1, 2, 0).numpy(), array[3])


def test_a_batch_in_memory_is_a_copy() -> None:
    array = np.zeros((2, 32, 32, 3), dtype=np.uint8)
    Transform(settings()).batch(Pixels(array), [0, 1]).fill_(7)
    assert not array.any()


def crops(augment: Any, height: int, width: int, count: int = 200) -> torch.Tensor:
    transform, image = Transform(settings(), augment), plane(height, width)
    return torch.stack([transform(image, np.random.default_rng(seed)) for seed in range(count)]).float() / 255


@pytest.mark.parametrize(("height", "width"), [(100, 100), (100, 110), (120, 100)])
def test_a_crop_keeps_nine_tenths(height: int, width: int) -> None:
    """The pixels at the borders show which share of the width and of the height a crop spans."""
    pixels = crops("crop", height, width)
    spans_x = pixels[:, 0, 16, -1] - pixels[:, 0, 16, 0]
    spans_y = pixels[:, 1, -1, 16] - pixels[:, 1, 0, 16]
    # The first and the last pixel of 32 are centred 1/32 of the crop inside it; bicubic and 8 bits blur by a percent.
    area = spans_x * spans_y * (32 / 31) ** 2
    assert area.min() > 0.9 - 0.02
    assert area.max() < 1 + 0.02
    assert area.std() > 0.01
    shape = spans_x / spans_y * width / height
    assert shape.min() > 3 / 4 - 0.03
    assert shape.max() < 4 / 3 + 0.03


def test_crops_lie_anywhere() -> None:
    pixels = crops("crop", 100, 100)
    left, right = pixels[:, 0, 16, 0], 1 - pixels[:, 0, 16, -1]
    assert left.std() > 0.005
    assert right.std() > 0.005
    assert abs(float((left - right).mean())) < 0.01


def test_half_of_all_images_are_mirrored() -> None:
    """A binomial count of 200: within 4 standard deviations of 7."""
    mirrored = (crops("crop+flip", 100, 100)[:, 0, 16, 0] > 0.5).sum()
    assert abs(int(mirrored) - 100) < 28
    assert not (crops("crop", 100, 100)[:, 0, 16, 0] > 0.5).any()


@pytest.mark.parametrize(
    ("height", "width", "box"), [(100, 300, (83, 0, 216, 100)), (300, 90, (0, 90, 90, 210))]
)
def test_long_pictures_are_cropped_in_the_middle(height: int, width: int, box: Any) -> None:
    """No crop of 90 % of the area has an allowed aspect ratio; the fallback is the largest centred one that has."""
    image = plane(height, width)
    expected = image.resize((32, 32), Image.Resampling.BICUBIC, box=box)
    cropped = crops("crop", height, width, count=5)
    assert torch.equal(
        cropped, (torch.from_numpy(np.array(expected)).permute(2, 0, 1) / 255).expand(5, -1, -1, -1)
    )


@pytest.mark.parametrize(("height", "width"), [(100, 100), (100, 133), (100, 150), (140, 100)])
def test_crops_are_distributed_as_torchvision_s(height: int, width: int) -> None:
    """The mean crop is that of RandomResizedCrop(scale=(0.9, 1)), as in the papers, within 5 standard errors."""
    torch.manual_seed(0)
    count = 1500
    image: Any = Image.new("RGB", (width, height))
    chosen: Any = [
        open_clip.transform.RandomResizedCrop.get_params(image, [0.9, 1.0], [3 / 4, 4 / 3])
        for _ in range(count)
    ]
    theirs = np.array([[left, top, left + w, top + h] for top, left, h, w in chosen], dtype=float)
    boxes: list[Any] = []

    class RecordingImage:
        size = (width, height)

        def resize(self, target: tuple[int, int], filter: int, box: Any) -> Image.Image:
            boxes.append(box)
            return image

    recorder: Any = RecordingImage()
    transform = Transform(settings(), "crop")
    for seed in range(count):
        transform._crop(Draft(recorder, recorder.size), np.random.default_rng(seed))
    ours = np.array(boxes, dtype=float)
    error = np.sqrt((ours.var(axis=0) + theirs.var(axis=0)) / count)
    assert (abs(ours.mean(axis=0) - theirs.mean(axis=0)) < 5 * error + 1e-9).all()


def test_augmentation_needs_a_generator_and_is_its_function() -> None:
    transform, image = Transform(settings(), "crop+flip"), picture(50, 50)
    assert torch.equal(transform(image), Transform(settings())(image))  # evaluation never augments
    one, again, other = (transform(image, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    assert torch.equal(Transform(settings())(image, np.random.default_rng(1)), transform(image))


def test_an_unknown_augmentation_is_refused() -> None:
    unknown: Any = "crop-flip"
    with pytest.raises(UserError, match=r"did you mean crop\+flip or crop"):
        Transform(settings(), unknown)


def jpegs(folder: Path, *sizes: tuple[int, int]) -> Files:
    """JPEG files similar to photographs: smooth, with some grain."""
    rng = np.random.default_rng(0)
    for number, (width, height) in enumerate(sizes):
        coarse = Image.fromarray(rng.integers(256, size=(9, 12, 3), dtype=np.uint8))
        smooth = np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC), dtype=float)
        grain = rng.normal(0, 4, smooth.shape)
        image = Image.fromarray(np.clip(smooth + grain, 0, 255).astype(np.uint8))
        image.save(folder / f"{number}.jpg", quality=92)
    return Files(folder, tuple(f"{number}.jpg" for number in range(len(sizes))))


@pytest.mark.parametrize(
    ("size", "times"), [((500, 375), 4), ((160, 120), 1), ((161, 200), 2), ((77, 77), 1), ((1301, 997), 8)]
)
def test_a_draft_is_as_small_as_its_window_allows(tmp_path: Path, size: tuple[int, int], times: int) -> None:
    """For a target of 32 pixels the crop keeps at least 2 · 32, so that the whole image needs 78."""
    result = draft(jpegs(tmp_path, size), 0, (78, 78))
    assert (result.stored, result.times) == (size, times)
    assert result.image.size == tuple(-(-side // times) for side in size)
    assert times == 8 or min(size) // (2 * times) < 78


def test_drafts_show_the_same_window(tmp_path: Path) -> None:
    images = jpegs(tmp_path, (500, 375), (640, 480), (301, 1000), (90, 80))
    plain, drafted = (Transform(settings(), "crop+flip", drafts=each) for each in (False, True))

    def pixels(transform: Transform) -> torch.Tensor:
        return transform.batch(images, range(4), (np.random.default_rng(i) for i in range(4))).float()

    gap = (pixels(plain) - pixels(drafted)).abs()
    assert 0 < float(gap.mean()) < 2.5  # levels of 255
    assert not gap[3].any()  # too small for a draft: the same pixels


def test_evaluation_ignores_drafts(tmp_path: Path) -> None:
    images = jpegs(tmp_path, (500, 375))
    exact, drafted = Transform(settings()), Transform(settings(), "crop", drafts=True)
    assert torch.equal(drafted.batch(images, [0]), exact.batch(images, [0]))
