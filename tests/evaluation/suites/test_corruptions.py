"""Corruptions: repeatable, graded, and with the statistics that define them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from closeness import length, same
from kept import predictions
from PIL import Image
from posting import posted

from tracer.cli.app import main
from tracer.core.errors import UserError
from tracer.data.examples import Examples, Pixels
from tracer.data.sources import load
from tracer.evaluation.predict import Scorer
from tracer.evaluation.suites.corruptions import KINDS, Corrupted, corrupt, disk
from tracer.evaluation.suites.shift import Role, Shift, Suite
from tracer.models.student import load as model
from tracer.parallel import World

SHADES = np.random.default_rng(0).integers(40, 200, (3, 41, 41, 3), dtype=np.uint8)
PHOTOS = Pixels(np.stack([np.asarray(Image.fromarray(shades).resize((224, 224))) for shades in SHADES]))


def unread() -> Examples:
    raise AssertionError("nothing is read")


def values(image: Image.Image) -> np.ndarray:
    return np.asarray(image, np.float64) / 255


def grey(level: int, side: int = 224) -> Pixels:
    return Pixels(np.full((1, side, side, 3), level, np.uint8))


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_index_gives_the_same_picture(kind: str) -> None:
    first = Corrupted(PHOTOS, kind, 3)
    again = posted(first)
    assert np.array_equal(values(first[1]), values(again[1]))
    assert first[1].size == (224, 224)
    assert first[1].mode == "RGB"
    assert len(first) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_severity_grows(kind: str) -> None:
    clean = values(PHOTOS[0])
    errors = [
        np.square(values(Corrupted(PHOTOS, kind, severity)[0]) - clean).mean() for severity in range(1, 6)
    ]
    assert errors == sorted(errors)
    assert 0 < errors[0] < errors[-1]


@pytest.mark.parametrize("kind", ["gaussian_noise", "shot_noise"])
def test_noise_is_its_own_for_each_image_and_severity(kind: str) -> None:
    same = Pixels(np.full((2, 16, 16, 3), 128, np.uint8))
    pictures = [Corrupted(same, kind, 3)[0], Corrupted(same, kind, 3)[1], Corrupted(same, kind, 4)[0]]
    assert len({picture.tobytes() for picture in pictures}) == 3


def test_a_subset_keeps_the_noise_of_its_images() -> None:
    examples = Examples("x", PHOTOS, ["a", "b", "c"], np.zeros(3, np.int64), [()] * 3, ("k",))
    suite = Suite("s", (Shift("x", "id", lambda: examples, ("k",)),))
    whole = corrupt(suite, "gaussian_noise:3").shifts[1].load()
    part = whole.take(np.array([2]))
    assert np.array_equal(values(part.images[0]), values(whole.images[2]))


@pytest.mark.parametrize("severity", [1, 3])
def test_noise_has_the_variance_that_defines_it(severity: int) -> None:
    deviation = KINDS["gaussian_noise"][1][severity - 1]
    noisy = values(Corrupted(grey(128), "gaussian_noise", severity)[0])
    assert noisy.std() == pytest.approx(deviation, rel=0.02)
    photons = KINDS["shot_noise"][1][severity - 1]
    level = 64 / 255
    shot = values(Corrupted(grey(64), "shot_noise", severity)[0])
    assert shot.mean() == pytest.approx(level, rel=0.02)
    assert shot.var() == pytest.approx(level / photons, rel=0.05)  # Poisson: the variance is the mean


@pytest.mark.parametrize("kind", ["gaussian_blur", "defocus_blur", "contrast", "pixelate", "jpeg"])
def test_a_plain_image_stays_plain(kind: str) -> None:
    changed = values(Corrupted(grey(100), kind, 5)[0])
    assert np.abs(changed - 100 / 255).max() <= 1.5 / 255


def test_contrast_shrinks_deviations_and_keeps_the_mean() -> None:
    clean, flat = values(PHOTOS[0]), values(Corrupted(PHOTOS, "contrast", 2)[0])
    assert flat.mean(axis=(0, 1)) == pytest.approx(clean.mean(axis=(0, 1)), abs=0.003)
    assert flat.std(axis=(0, 1)) == pytest.approx(0.3 * clean.std(axis=(0, 1)), abs=0.003)


def test_brightness_raises_the_value_and_keeps_the_hue() -> None:
    pixels = np.array([[[[100, 50, 20], [0, 0, 0], [250, 10, 10]]]], np.uint8).repeat(3, axis=1)
    bright = np.asarray(Corrupted(Pixels(pixels), "brightness", 2)[0])[0].tolist()  # + 0.2 · 255 = 51
    assert bright[0] == [151, round(50 * 1.51), round(20 * 1.51)]
    assert bright[1] == [51, 51, 51]
    assert bright[2] == [255, round(10 * 255 / 250), round(10 * 255 / 250)]


def test_pixelate_leaves_few_colours() -> None:
    photo = Pixels(np.random.default_rng(0).integers(0, 256, (1, 224, 224, 3), dtype=np.uint8))
    picture = np.asarray(Corrupted(photo, "pixelate", 5)[0]).reshape(-1, 3)
    assert len(np.unique(picture, axis=0)) <= 56 * 56


def test_blur_keeps_the_light() -> None:
    assert float(disk(4.0).sum()) == pytest.approx(1)
    assert float(disk(0.0).sum()) == 1  # no radius, no blur
    point = np.zeros((1, 224, 224, 3), np.uint8)
    point[0, 112, 112] = 255
    spread = np.asarray(Corrupted(Pixels(point), "defocus_blur", 1)[0], np.float64)[..., 0]
    assert (spread > 0).sum() == (disk(3.0) * 255 >= 0.5).sum()


@pytest.mark.parametrize("kind", KINDS)
def test_any_size_will_do(kind: str) -> None:
    large = Pixels(np.random.default_rng(0).integers(0, 256, (1, 500, 400, 3), dtype=np.uint8))
    assert Corrupted(large, kind, 3)[0].size == (224, 280)
    small = Pixels(np.random.default_rng(0).integers(0, 256, (1, 28, 20, 3), dtype=np.uint8))
    assert Corrupted(small, kind, 5)[0].size == (20, 28)


def test_a_shift_for_each_kind_and_severity() -> None:
    examples = Examples("x", PHOTOS, ["a", "b", "c"], np.zeros(3, np.int64), [()] * 3, ("k",))
    base = Shift("mine", "id", lambda: examples, ("k",), size=3)
    suite = Suite("own", (base,))
    made = corrupt(suite, "jpeg:1", "jpeg:5", "contrast:1", "contrast:5").shifts[1:]
    assert [shift.name for shift in made] == [
        "mine jpeg 1",
        "mine jpeg 5",
        "mine contrast 1",
        "mine contrast 5",
    ]
    assert {shift.role for shift in made} == {"ood"}
    for shift in made:
        images = shift.load().images
        assert isinstance(images, Corrupted)
        assert shift.name == f"mine {images.kind} {images.severity}"
    with pytest.raises(UserError, match="unknown corruption"):
        corrupt(suite, "fog")


def test_a_suite_under_corruptions_keeps_its_mean_over_shifts() -> None:
    def shift(name: str, role: Role) -> Shift:
        return Shift(name, role, unread, ("a",))

    suite = Suite("s", (shift("day", "id"), shift("dusk", "ood"), shift("night", "ood")))
    made = corrupt(suite, "jpeg:2", "contrast", "jpeg:2")
    assert [shift.name for shift in made.of("ood")][2:] == [
        *("day jpeg 2", "day contrast 1", "day contrast 3", "day contrast 5"),
    ]
    mean, of_corrupted = made.averages
    assert mean == ("OOD", ("dusk", "night")), "corruptions are no part of the paper's mean"
    assert of_corrupted.name == "corrupted"
    assert len(of_corrupted.members) == 4
    assert len(corrupt(suite, "all:3").shifts) == 3 + len(KINDS)
    assert len(corrupt(suite, "all").shifts) == 3 + 3 * len(KINDS)
    assert corrupt(suite) == suite


@pytest.mark.parametrize(
    ("words", "says"),
    [("fog:3", "gaussian_noise"), ("jpeg:6", "1 to 5"), ("jpeg:", "1 to 5"), ("jpeg:x", "KIND")],
)
def test_unknown_corruptions_are_told(words: str, says: str) -> None:
    suite = Suite("s", (Shift("day", "id", unread, ("a",)),))
    with pytest.raises(UserError, match=says):
        corrupt(suite, words)


def test_corruptions_need_a_set_of_their_own_task() -> None:
    with pytest.raises(UserError, match="role id"):
        corrupt(Suite("s", (Shift("night", "ood", unread, ("a",)),)), "jpeg:1")


def test_corruptions_from_the_command_line(some_digits: Path, tmp_path: Path) -> None:
    arguments = ["eval", "tiny-28", "--pretrained", "none", "--data", str(some_digits), "--device", "cpu"]
    arguments += ["--templates", "name"]
    assert main([*arguments, "--corrupt", "contrast:5", "--out", str(tmp_path)]) == 0
    plain, changed = (predictions(tmp_path, name) for name in ("some.npz", "some.npz contrast 5"))
    assert plain.ids == changed.ids
    assert not torch.allclose(plain.logits, changed.logits)
    examples = load(str(some_digits))
    examples = replace(examples, images=Corrupted(examples.images, "contrast", 5))
    again = Scorer(model("tiny-28"), World("cpu")).predict(examples, ("{}",))
    same(changed.logits, again.logits, length(model("tiny-28")))
    assert main([*arguments, "--corrupt", "fog"]) == 2
