from __future__ import annotations

import shlex
import shutil

import numpy as np
import pytest
from PIL import Image

from tracer.cli.app import main
from tracer.data.checking import report
from tracer.data.checking.duplicates import duplicates, shared_images
from tracer.data.checking.report import command
from tracer.data.examples import Examples
from tracer.data.scan import scan
from tracer.data.sources import load
from tracer.data.split import Division, hold_out
from tracer.models.open_clip_compat import open_clip
from tracer.models.token_count import TokenCount
from tracer.runs.experiment import Experiment
from tracer.runs.plan import plan


@pytest.fixture
def birds(tmp_path, picture):
    """A table of six images with captions; three are identical, one of them with another label."""
    for i in range(4):
        picture(f"{i}.png")
    shutil.copy(tmp_path / "0.png", tmp_path / "4.png")
    shutil.copy(tmp_path / "0.png", tmp_path / "5.png")
    rows = [f"{i}.png,{'word ' * (i + 1)},{'owl' if i < 5 else 'jay'}" for i in range(6)]
    (tmp_path / "birds.csv").write_text(
        "\n".join(["filepath,title,label", *rows, f"1.png,{'long ' * 100},owl"])
    )
    return tmp_path / "birds.csv"


def describe(train: Examples, held_out: Examples | None = None) -> list[str]:
    """The report on these images, without a held-out set if none is given."""
    others = train.take(np.array([], int)) if held_out is None else held_out
    tokens = TokenCount(open_clip.get_tokenizer("ViT-B-32"), "ViT-B-32")
    return report.describe(Division(train, others, None, "others"), None, "the command", tokens, ("{}",))


def test_counts_lengths_and_duplicates(birds):
    examples = scan(load(birds))
    lines = describe(examples)
    assert lines[lines.index("images      6, and 0 held out (others)") : -1] == [
        "images      6, and 0 held out (others)",
        *(f"found       {note}" for note in examples.detected),
        "classes     2; images in each: 1 to 5 (median 3)",
        "            owl (5), jay (1)",
        "            with one image to train on: jay",
        # Each word is one token; start and end are two.
        "captions    7; words in each: 1 to 100 (median 4)",
        "tokens      in each caption, for ViT-B-32: 3 to 102 (median 6)",
        "            1 of 7 captions (14.3%) are longer than the 77 tokens of ViT-B-32",
        "            and will be cut",
        "duplicates  2 images are copies of another",
        "            0.png = 4.png = 5.png",
        "warning     1 images are trained on as more than one class, such as 0.png and",
        "            4.png",
    ]


def test_tokens_are_those_of_the_model(birds):
    captions = [text for texts in load(birds).captions for text in texts]
    tokens = open_clip.get_tokenizer("ViT-B-32")(captions, context_length=200)
    longest = int((tokens != 0).sum(dim=1).max())
    assert any(f"for ViT-B-32: 3 to {longest} (median" in line for line in describe(load(birds)))


def test_duplicates_across_splits(birds):
    examples = scan(load(birds))
    train, held_out = examples.take(np.array([0, 1, 2])), examples.take(np.array([3, 4, 5]))
    lines = describe(train, held_out)
    assert "images      3, and 3 held out (others)" in lines
    assert "duplicates  none" in lines
    warning = "2 of 3 held-out images are also trained on, such as 4.png: accuracy"
    assert f"warning {warning}" in " ".join(" ".join(lines).split())
    assert [held_out.ids[place] for place in shared_images(train, held_out)] == ["4.png", "5.png"]


def test_the_command_compares_the_splits_that_the_data_bring(tmp_path, picture, capsys):
    for name in ("train/cat/1.png", "train/dog/2.png", "val/cat/3.png", "test/dog/5.png"):
        picture(name)
    shutil.copy(tmp_path / "train" / "dog" / "2.png", tmp_path / "val" / "cat" / "4.png")
    assert main(["check", str(tmp_path)]) == 0
    output = capsys.readouterr().out
    assert "images      2, and 2 held out (the split val)" in output
    assert "1 of 2 held-out images are also trained on, such as val/cat/4.png" in output
    assert "split folders: train, val, test; this is train" in output


def test_check_and_train_divide_the_data_alike(tmp_path, picture, capsys):
    for i in range(20):
        picture(f"train/{'ab'[i % 2]}/{i}.png")
    picture("test/a/1.png")
    assert main(["check", str(tmp_path)]) == 0
    assert "images      16, and 4 held out (20.0% of the training data)" in capsys.readouterr().out
    settled = plan(Experiment(data=str(tmp_path), model="tiny-28", pretrained="none"))
    assert settled.division == "16 images to train on, 4 held out (20.0% of the training data)"
    assert (len(settled.train), len(settled.held_out)) == (16, 4)
    assert settled.experiment.held_out_share == 0.2


def test_what_is_probably_not_meant_is_said(tmp_path, picture, capsys):
    for name in ("0/1.png", "0/2.png", "1/3.png"):
        picture(name)
    (tmp_path / "2").mkdir()
    assert main(["check", str(tmp_path)]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert "warning the classes are numbers" in output
    assert "--classes FILE" in output
    assert "the folder 2 holds no image, and is no class" in output
    assert "with one image to train on: 0, 1" in output
    assert (
        len(plan(Experiment(data=str(tmp_path), model="tiny-28", pretrained="none", batch=2)).warnings) == 2
    )


def test_the_command_goes_on_without_unreadable_images(tmp_path, picture, capsys):
    for i in range(6):
        picture(f"{'ab'[i % 2]}/{i}.png")
    (tmp_path / "a" / "0.png").write_bytes(b"")
    assert main(["check", str(tmp_path)]) == 2
    assert "--skip-unreadable" in capsys.readouterr().err
    assert main(["check", str(tmp_path), "--skip-unreadable"]) == 0
    assert f"tracer train --data {shlex.quote(str(tmp_path))} --skip-unreadable" in capsys.readouterr().out


def test_pixels_are_compared_where_there_are_no_files():
    digits = scan(load("digits", split="test"))
    assert duplicates(digits) == []
    twice = digits.take(np.array([3, 4, 3]))
    assert duplicates(twice) == [[digits.ids[3], digits.ids[3]]]
    assert shared_images(twice, digits) == [3, 4]


def test_lines_say_everything_once(birds):
    text = "\n".join(describe(*hold_out(load(birds))))
    for finding in (
        "images      5, and 1 held out",
        "found       separator: comma",
        "found       caption column: title",
        "classes     2; images in each: 1 to 4",
        "owl (4), jay (1)",
        "are longer than the 77 tokens of ViT-B-32",
        "train with  the command",
    ):
        assert text.count(finding) == 1, finding


def test_unreadable_images_are_listed(tmp_path, picture):
    for i in range(150):
        picture(f"{'ab'[i % 2]}/{i}.png")
    (tmp_path / "a" / "0.png").write_bytes(b"")
    lines = describe(scan(load(tmp_path)))
    assert "unreadable  1 image, left out" in lines
    assert any("a/0.png: the file is empty" in line for line in lines)


def test_classes_without_images_are_listed(tmp_path, picture):
    picture("cat/1.png")
    picture("dog/1.png")
    lines = describe(load(tmp_path, classes=["cat", "dog", "owl"]))
    assert any("images in each: 0 to 1" in line for line in lines)
    assert any("no image of the class 'owl' is trained on" in line for line in lines)


def test_the_command_can_be_pasted():
    flags = {"data": "a b/$HOME.csv", "label_column": "it's", "separator": None}
    assert shlex.split(command(flags)) == [
        *("tracer", "train", "--data", "a b/$HOME.csv"),
        *("--label-column", "it's"),
    ]


def photo(seed: int, size: tuple[int, int] = (60, 48)) -> Image.Image:
    """A smooth picture of its own, as photographs are."""
    coarse = np.random.default_rng(seed).integers(0, 255, (6, 8, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC)


def test_leaks_are_found_whatever_their_size_and_encoding(tmp_path, capsys):
    for split, numbers in (("train", range(12)), ("val", range(20, 26)), ("test", range(30, 36))):
        for number in numbers:
            folder = tmp_path / split / ("cat", "dog")[number % 2]
            folder.mkdir(parents=True, exist_ok=True)
            photo(number).save(folder / f"{number}.png")
    photo(3).save(tmp_path / "test" / "dog" / "again.jpg", quality=80)
    photo(4).resize((200, 160)).save(tmp_path / "val" / "cat" / "large.webp")
    Image.new("RGB", (20, 20), "white").save(tmp_path / "train" / "cat" / "blank.png")
    Image.new("RGB", (20, 20), "white").save(tmp_path / "test" / "cat" / "blank.jpg")  # shows nothing
    assert main(["check", str(tmp_path)]) == 0
    output = capsys.readouterr().out
    assert "test        8 images that training does not use: tracer eval RUN --data" in output
    assert [line[:4] for line in output.splitlines()].count("leak") == 2
    leaks = " ".join(output.split()).split(" leak ")[1:]
    assert "1 held-out image shows what a training image shows" in leaks[0]
    assert "val/cat/large.webp and train/cat/4.png" in leaks[0]
    assert "test/dog/again.jpg and train/dog/3.png" in leaks[1]


def drawing(seed: int, size: tuple[int, int]) -> Image.Image:
    """A disc in two colours that are equally bright, with some noise."""
    numbers = np.random.default_rng(seed)
    grey = np.array([0.299, 0.587, 0.114])
    colours = [colour + 90 - colour @ grey for colour in numbers.uniform(-60, 60, (2, 3))]
    x, y = np.meshgrid(np.linspace(-1, 1, size[0]), np.linspace(-1, 1, size[1]))
    pixels = np.where((x**2 + y**2 < 0.3)[..., None], *colours) + numbers.normal(0, 5, (*x.shape, 3))
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


def test_resized_drawings_are_copies_and_other_colours_are_not(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TRACER_CACHE", str(tmp_path / "cache"))
    data, sizes = tmp_path / "drawings", np.random.default_rng(0).integers(66, 180, (40, 2)).tolist()
    for number, size in enumerate(sizes):
        folder = data / "train" / ("red", "blue")[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        drawing(number, tuple(size)).save(folder / f"{number}.jpg", quality=85)
    folder = data / "test" / "red"
    folder.mkdir(parents=True)
    for number in range(0, 24, 2):
        Image.open(data / "train" / "red" / f"{number}.jpg").resize((80, 80)).save(
            folder / f"copy-{number}.png"
        )
    for number in range(100, 120):
        for split in ("val", "test"):
            (data / split / "blue").mkdir(parents=True, exist_ok=True)
            drawing(number + len(split), (80, 80)).save(data / split / "blue" / f"{number}.png")
    assert main(["check", str(data)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "12 test images show what a training image shows" in shown
    assert "… and 2 more; all are listed in" in shown
    (listing,) = (tmp_path / "cache").glob("copies-*.txt")
    pairs = dict(line.split("\t") for line in listing.read_text().splitlines())
    assert pairs == {f"test/red/copy-{n}.png": f"train/red/{n}.jpg" for n in range(0, 24, 2)}


def test_an_imbalance_is_said(tmp_path, picture, capsys):
    for number in range(45):
        picture(f"cat/{number}.png")
    for number in range(2):
        picture(f"dog/{number}.png")
    assert main(["check", str(tmp_path)]) == 0
    output = capsys.readouterr().out
    assert "imbalance: cat has 36 times as many images" in output
    # A path is not broken within a word, however long it is.
    assert all(len(line) <= 80 for line in output.splitlines() if tmp_path.name not in line)


def test_a_table_beside_the_images_is_not_passed_over_in_silence(tmp_path, picture, capsys):
    for number in range(4):
        picture(f"pics/{number}.png")
    (tmp_path / "labels.csv").write_text("image;class")
    assert main(["check", str(tmp_path)]) == 2
    assert f"{tmp_path / 'labels.csv'} is not read" in capsys.readouterr().err
