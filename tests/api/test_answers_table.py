"""`tracer predict`: the answers of the model for every image, whatever the format, the interruption and the damage."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tracer
from tracer.api import predict
from tracer.api.predict import Answer, answers, images_at, question, recorded
from tracer.cli import main
from tracer.core.errors import UserError
from tracer.evaluation.model import Model

WORDS = ["red", "green", "blue sky"]
NASTY = (
    "=1+2.png",
    "a,b.png",
    'q"uote.png',
    "new\nline.png",
    "right\u202eto left.png",
    "ü.png",
    "+x.png",
    "@y.png",
    "-z.png",
)


@pytest.fixture(scope="module")
def model(minute: str) -> Model:
    return tracer.load(minute, "none")


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Images of nasty names, some below folders, and one that is broken."""
    rng = np.random.default_rng(0)
    for number, name in enumerate((*NASTY, "sub/ü.png", "plain")):
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 255, (20, 30, 3), np.uint8)).save(path, "PNG")
        assert number < 256
    (tmp_path / "photos" / "broken.jpg").write_bytes(b"\xff\xd8\xff nothing")
    return tmp_path / "photos"


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predict, "BLOCK", 4)


def rows_of(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".csv":
        rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"), newline="")))
        return [
            {name: float(cell) if cell and "probability" in name else cell for name, cell in row.items()}
            for row in rows
        ]
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    import pandas

    return pandas.read_parquet(path).to_dict("records")


@pytest.mark.parametrize("suffix", predict.FORMATS)
def test_every_image_is_a_row_with_what_the_model_says(
    suffix: str, photos: Path, minute: str, model: Model, tmp_path: Path
) -> None:
    out = tmp_path / f"answers{suffix}"
    asked = [
        "predict",
        minute,
        str(photos),
        "--pretrained",
        "none",
        "--classes",
        *WORDS,
        "--out",
        str(out),
        "--top",
        "2",
        "--device",
        "cpu",
    ]
    assert main(asked) == 0
    rows, images = rows_of(out), images_at([str(photos)])
    assert len(rows) == len(images) == len(NASTY) + 3
    (broken,) = [row for row in rows if row["problem"]]
    assert broken["file"].endswith("broken.jpg")
    assert "cannot be read" in broken["problem"]
    assert not broken["class"]
    for row in rows:
        if row["problem"]:
            continue
        place = row["file"]
        assert Path(place).is_file()
        (expected,) = model.predict(place, WORDS, top=2)
        assert row["class"] == expected.name
        assert row["probability"] == pytest.approx(expected.probability, abs=1e-5)
        assert (row["class_2"], row["probability_2"]) == (
            expected.top[1][0],
            pytest.approx(expected.top[1][1], abs=1e-5),
        )
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []


def test_no_cell_is_a_formula(
    minute: str, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names that begin as a formula does: a spreadsheet shows them and computes nothing."""
    monkeypatch.chdir(photos)
    out = tmp_path / "answers.csv"
    own = [name for name in NASTY if name[0] in "=+@-"]
    words = ["=HYPERLINK(1)", "+1"]
    # A name that begins with - would be a flag: names come through a pipe.
    lines = "\n\n".join(own).encode()  # empty lines are no names
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines)))
    assert (
        main(
            [
                "predict",
                minute,
                "-",
                "--pretrained",
                "none",
                "--classes",
                *words,
                "--out",
                str(out),
                "--device",
                "cpu",
            ]
        )
        == 0
    )
    cells = [cell for row in csv.reader(io.StringIO(out.read_text(), newline="")) for cell in row]
    assert not [cell for cell in cells if cell[:1] in set("=+-@")]
    assert {f"'{name}" for name in own} <= set(cells)


class Stop(Exception):
    pass


def test_a_table_that_was_stopped_goes_on(photos: Path, model: Model, tmp_path: Path) -> None:
    images, record = images_at([str(photos)]), tmp_path / "record"
    asked = question(model, images, WORDS, None, 3)
    computed: list[int] = []

    def blocks(skip: int, stop_after: int = 99) -> Iterator[list[Answer]]:
        for number, block in enumerate(answers(model, images, WORDS, None, 3, skip)):
            if number == stop_after:
                raise Stop
            computed.append(len(block))
            yield block

    whole = list(recorded(blocks, images, asked, tmp_path / "undisturbed"))
    computed.clear()
    with pytest.raises(Stop):
        list(recorded(lambda skip: blocks(skip, 2), images, asked, record))
    with record.open("a") as file:
        file.write('["cut off')
    assert list(recorded(blocks, images, asked, record)) == whole
    assert sum(computed) == len(images)  # none twice
    computed.clear()
    other = list(recorded(blocks, images, question(model, images, WORDS[:2], None, 3), record))
    assert [row.file for row in other] == [row.file for row in whole]
    assert sum(computed) == len(images)  # another question: all anew


def test_images_are_sorted_into_folders_of_their_classes(photos: Path, minute: str, tmp_path: Path) -> None:
    """One to one: no image replaces another of its name, no class another."""
    words, place = ["a/b", "a%2Fb", "..", "x\0y"], tmp_path / "sorted"
    asked = [
        "predict",
        minute,
        str(photos),
        "--pretrained",
        "none",
        "--classes",
        *words,
        "--sort",
        str(place),
        "--device",
        "cpu",
    ]
    for _ in range(2):  # again: nothing more
        assert main(asked) == 0
    files = [path for path in place.rglob("*") if path.is_file() and path.name != predict.ASKED]
    assert len(files) == len(NASTY) + 2
    contents = {path.read_bytes() for path in files}
    assert contents == {
        path.read_bytes() for path in photos.rglob("*") if path.is_file() and "broken" not in path.name
    }
    assert all(path.parent.parent == place for path in files)


def test_classes_have_folders_one_to_one() -> None:
    names = ["a/b", "a%2Fb", ".", "..", "%2E", "a.", "a", "a ", "ü", "x\0"]
    assert len({predict._folder_name(name) for name in names}) == len(names)


def test_what_is_not_sure_has_no_class(
    photos: Path, minute: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "answers.jsonl"
    asked = [
        "predict",
        minute,
        str(photos),
        "--pretrained",
        "none",
        "--classes",
        *WORDS,
        "--out",
        str(out),
        "--device",
        "cpu",
    ]
    assert main([*asked, "--sure", "1"]) == 0
    assert {row["class"] for row in rows_of(out)} == {""}
    assert f"{len(NASTY) + 2} have no class: none is as probable as --sure 1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (["nowhere"], "there is no file or folder nowhere"),
        (["empty"], "no images in empty"),
        (["a.pdf"], "a.pdf is no data of a known kind"),
        (["broken.jpg"], "none of 1 images can be read; the first: .* it is no image"),
        ([], "tracer predict needs IMAGES"),
        (["photo.png", "--out", "a.xlsx"], "name a file that ends in .csv, .jsonl, .parquet"),
        (["photo.png", "--sure", "7"], "--sure 7: give a probability"),
        (["photo.png", "--top", "0"], "--top 0"),
        (["photo.png", "--classes", "one"], "between at least two classes"),
        (["photo.png", "--classes", "cat", "dog", "cat"], "'cat' is given twice"),
    ],
)
def test_what_cannot_be_answered_is_said_before_work(
    given: Sequence[str],
    problem: str,
    minute: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("a.pdf").write_bytes(b"%PDF")
    Path("broken.jpg").write_bytes(b"no image")
    Image.new("RGB", (8, 8)).save("photo.png")
    before = sorted(tmp_path.iterdir())
    words = [] if "--classes" in given else ["--classes", "cat", "dog"]
    assert main(["predict", minute, *given, "--pretrained", "none", "--device", "cpu", *words]) == 2
    import re

    assert re.search(problem, capsys.readouterr().err.replace("\n", " "))
    assert sorted(tmp_path.iterdir()) == before


def test_files_are_sorted_and_nothing_else(
    minute: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [
        "predict",
        minute,
        "digits",
        "--pretrained",
        "none",
        "--classes",
        "a",
        "b",
        "--sort",
        str(tmp_path / "s"),
    ]
    assert main(asked) == 2
    assert "--sort needs images that are files" in capsys.readouterr().err
    assert not (tmp_path / "s").exists()


def test_an_image_that_goes_while_others_are_answered_is_a_row(photos: Path, model: Model) -> None:
    images = images_at([str(photos)])
    (photos / "plain").unlink()
    rows = [row for block in answers(model, images, WORDS) for row in block]
    gone = [row for row in rows if "no such file" in row.problem]
    assert [Path(row.file).name for row in gone] == ["plain"]
    assert len(rows) == len(images)


def test_two_at_once_do_not_write_one_table(tmp_path: Path) -> None:
    out = tmp_path / "a.csv"
    with (
        predict.unfinished(out),
        pytest.raises(UserError, match="another process is writing"),
        predict.unfinished(out),
    ):
        pass


def told(model: Model, images: Any, record: Path) -> list[Answer]:
    asked = question(model, images, WORDS, None, 2)
    return list(recorded(lambda skip: answers(model, images, WORDS, None, 2, skip), images, asked, record))


def test_a_record_of_other_images_is_begun_anew(model: Model, tmp_path: Path) -> None:
    """Ids are not unique: those of arrays are numbers."""
    sources = []
    for value in (20, 200):
        pixels = np.random.default_rng(value).integers(0, value, (6, 20, 20, 3), np.uint8)
        np.savez(tmp_path / f"{value}.npz", images=pixels)
        sources.append(images_at([str(tmp_path / f"{value}.npz")]))
    assert list(sources[0].ids) == list(sources[1].ids)
    told(model, sources[0], tmp_path / "record")
    assert told(model, sources[1], tmp_path / "record") == told(model, sources[1], tmp_path / "fresh")


def test_a_file_that_was_written_over_is_answered_again(model: Model, tmp_path: Path) -> None:
    photo, found = tmp_path / "photo.png", []
    for number, colour in enumerate(((250, 0, 0), (0, 0, 250))):
        Image.new("RGB", (20 + number, 20), colour).save(photo)
        (answer,) = told(model, images_at([str(photo)]), tmp_path / "record")
        (expected,) = model.predict(str(photo), WORDS, top=2)
        assert [name for name, _ in answer.top] == [name for name, _ in expected.top]
        assert answer.probability == pytest.approx(expected.probability, abs=1e-6)
        found.append(answer.top)
    assert found[0] != found[1]


def test_images_of_a_table_are_sorted_from_where_they_lie(
    minute: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their paths are relative to the table; files of the same names lie in the working directory."""
    (tmp_path / "data").mkdir()
    for folder, colour in (("data", (250, 0, 0)), (".", (0, 250, 0))):
        for number in range(2):
            Image.new("RGB", (20, 20), colour).save(tmp_path / folder / f"{number}.png")
    (tmp_path / "data" / "list.csv").write_text("image\n0.png\n1.png\n")  # new images have no labels
    monkeypatch.chdir(tmp_path)
    asked = [
        "predict",
        minute,
        "data/list.csv",
        "--pretrained",
        "none",
        "--classes",
        "a",
        "b",
        "--device",
        "cpu",
    ]
    assert main([*asked, "--sort", "sorted"]) == 0
    files = list(Path("sorted").rglob("*.png"))
    assert len(files) == 2
    assert {path.read_bytes() for path in files} == {Path("data", "0.png").read_bytes()}


@pytest.mark.parametrize("place", ["photos", "photos/sorted", "full"])
def test_images_are_not_sorted_into_themselves_or_among_others(
    place: str, photos: Path, minute: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(photos.parent)
    Path("full").mkdir()
    Path("full", "something").write_text("mine")
    asked = ["predict", minute, "photos", "--pretrained", "none", "--classes", "a", "b", "--device", "cpu"]
    assert main([*asked, "--sort", place]) == 2
    assert ("is not empty" if place == "full" else "give a folder outside of it") in capsys.readouterr().err


def test_two_that_sort_at_once_replace_nothing(tmp_path: Path) -> None:
    for number, folder in enumerate("ab"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.png").write_bytes(bytes([number]))
    predict.sort_into(tmp_path / "s", "cat", tmp_path / "a" / "x.png")
    (tmp_path / "s" / "cat" / "x-2.png").symlink_to("nowhere")  # a name that is taken
    predict.sort_into(tmp_path / "s", "cat", tmp_path / "b" / "x.png")
    assert (tmp_path / "s" / "cat" / "x.png").read_bytes() == b"\0"
    assert (tmp_path / "s" / "cat" / "x-3.png").read_bytes() == b"\1"


def test_kinds_that_are_not_read_and_the_split_are_said(
    photos: Path, minute: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (photos / "raw.dng").write_bytes(b"raw")
    asked = ["--pretrained", "none", "--classes", "a", "b", "--device", "cpu"]
    assert main(["predict", minute, str(photos), *asked]) == 0
    assert "1 .dng" in capsys.readouterr().err
    table = photos.parent / "list.csv"
    table.write_text("image,split\nphotos/plain,train\nphotos/ü.png,test\n")
    assert main(["predict", minute, str(table), *asked]) == 0
    assert "the split test of train, test" in capsys.readouterr().err


def test_a_dark_set_of_twelve_bits_is_seen_as_eval_sees_it(
    minute: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deep").mkdir()
    for number in range(3):
        values = np.full((20, 20), 1000 * (number + 1) + 95, np.uint16)
        Image.fromarray(values).save(tmp_path / "deep" / f"{number}.png")
    seen: list[Any] = []
    tell = predict._told
    monkeypatch.setattr(
        predict, "_told", lambda model, images, *rest: seen.append(images) or tell(model, images, *rest)
    )
    asked = ["predict", minute, str(tmp_path / "deep"), "--pretrained", "none", "--classes", "a", "b"]
    assert main([*asked, "--device", "cpu"]) == 0
    assert seen[0].white_level == 4095
    assert np.asarray(seen[0].images[2]).max() > 180
