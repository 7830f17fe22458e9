"""Images chosen by rule and found again, gain and loss by class, confusions."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest
import torch
from kept import answers, predictions
from PIL import Image
from written import photos, write_predictions, write_run

from tracer.core.errors import UserError
from tracer.data.sources import load
from tracer.evaluation.verdict import Change
from tracer.measure.answers import Predictions, Store
from tracer.report import images
from tracer.report.closer import choose, gallery
from tracer.report.images import SIDE
from tracer.report.page import write_report
from tracer.report.paired import Paired, paired_sets
from tracer.report.per_class import class_table, confusion_table, matrix
from tracer.report.run_data import read_run

URI = re.compile(r'src="data:image/jpeg;base64,([^"]+)"')


def paired(before: list[list[float]], after: list[list[float]], label: list[int]) -> Paired:
    """A data set by the probabilities of its classes."""
    ids = [f"{i}.png" for i in range(len(label))]
    first, second = (
        Predictions(torch.tensor(shares).log(), torch.tensor(label), ids) for shares in (before, after)
    )
    return Paired("test", "id", ("cat", "dog", "ship")[: len(before[0])], first, second)


def evaluated(folder: Path, data: Path, role: str = "id", classes: tuple[str, ...] = ("cat", "dog")) -> Path:
    """A run with the predictions that `tracer eval RUN --data role=data` leaves: half of the images are learned."""
    run = write_run(folder, classes=classes, data=str(data), held_out=None)
    examples = load(data)
    wrong = (torch.from_numpy(examples.labels) + 1) % len(examples.classes)
    right = torch.from_numpy(examples.labels)
    after = torch.where(torch.arange(len(right)) % 2 == 0, right, wrong)
    for weights, chosen in (("pretrained", wrong), ("result", after)):
        write_predictions(run, examples, chosen, weights, str(data), role)
    return run


def page_of(run: Path) -> str:
    write_report([run], run / "report.html")
    return (run / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("count", "said"), [(29, "of 29 images, too few to tell."), (30, "points, more than noise.")]
)
def test_few_images_cannot_tell_a_difference(count: int, said: str) -> None:
    data = paired([[0.4, 0.6]] * count, [[0.6, 0.4]] * count, [0] * count)
    assert data.levels.endswith(said)


def test_rules_choose_by_what_happened_to_the_true_class() -> None:
    data = paired(
        before=[[0.4, 0.6], [0.1, 0.9], [0.9, 0.1], [0.6, 0.4], [0.5, 0.5], [0.3, 0.7]],
        after=[[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.4, 0.6], [0.5, 0.5], [0.2, 0.8]],
        label=[0, 0, 0, 0, 0, 0],
    )
    learned, forgotten, mistakes, changed = choose(data, most=2)
    assert learned.rows == [1, 0], "0.7 gained, then 0.5"
    assert forgotten.rows == [2, 3], "0.7 lost, then 0.2"
    assert mistakes.rows == [2, 5], "wrong with 0.8, of equal ones the first"
    assert changed.rows == [], "all others are above, or did not move"
    assert [choice.total for choice in (learned, forgotten, mistakes)] == [2, 2, 3]


def test_gain_and_loss_by_class_are_paired_and_sorted() -> None:
    share = {0: [0.8, 0.1, 0.1], 1: [0.1, 0.8, 0.1], 2: [0.1, 0.1, 0.8]}
    label = [0, 0, 0, 1, 1, 2]
    data = paired([share[i] for i in (1, 1, 0, 1, 1, 2)], [share[i] for i in (0, 0, 0, 1, 0, 2)], label)
    table = class_table(data)
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["cat", "+66.7", "", "33.3 %", "100.0 %", "3"],
        ["ship", "+0.0", "", "100.0 %", "100.0 %", "1"],
        ["dog", "−50.0", "", "100.0 %", "50.0 %", "2"],
    ]
    assert table.rows[0][2].bar == Change.of([False, False, True], [True, True, True]).difference
    assert not any(row[1].best for row in table.rows), "a few images decide nothing"
    confusions = confusion_table(data)
    assert confusions is not None
    assert [[cell.text for cell in row] for row in confusions.rows] == [["dog", "cat", "1", "0", "+1"]]
    assert matrix(data) == [[3, 0, 0], [1, 1, 0], [0, 0, 1]]


def test_of_many_classes_the_ends_are_shown_and_no_matrix() -> None:
    size = 50
    label = torch.arange(size).repeat(4)
    other = (label + 1) % size
    first, second = torch.where(label < 20, other, label), torch.where(label < 30, label, other)
    logits = [torch.nn.functional.one_hot(chosen, size).float() for chosen in (first, second)]
    names = [str(i) for i in range(len(label))]
    before, after = (Predictions(each, label, names) for each in logits)
    data = Paired("test", "id", tuple(f"c{i}" for i in range(size)), before, after)
    table = class_table(data)
    assert [row[1].text for row in table.rows] == ["+100.0"] * 15 + ["−100.0"] * 15
    assert table.caption.startswith("20 of 50 classes gained and 20 lost; at most 15 of each are shown.")
    assert matrix(data) is None
    confusions = confusion_table(data)
    assert confusions is not None
    assert len(confusions.rows) == 15


def test_images_are_found_again_and_kept_small(tmp_path: Path) -> None:
    run = evaluated(tmp_path / "run", photos(tmp_path / "photos", count=30, side=400))
    html = page_of(run)
    pictures = [Image.open(BytesIO(base64.b64decode(code))) for code in URI.findall(html)]
    assert len(pictures) == 21, "seven learned, none forgotten, seven mistakes, seven changed"
    assert {picture.size for picture in pictures} == {(SIDE, SIDE)}
    assert len(html) < 1e6
    # Photos of cats are red, of dogs blue: a picture must stand beside its own name.
    names = re.findall(r'alt="(cat|dog)"', html)
    for picture, name in zip(pictures, names, strict=True):
        red, _, blue = picture.convert("RGB").resize((1, 1)).getpixel((0, 0))  # pyright: ignore[reportGeneralTypeIssues]
        assert (red > blue) == (name == "cat")
    shades = re.findall(r'<td class="(h\d[^"]*)">(\d*)', html)  # nine times the share of the row
    assert shades == [("h5 right", "8"), ("h4", "7"), ("h5", "8"), ("h4 right", "7")]
    for rule in ("Wrong before, right now", "Right before, wrong now", "Wrong now", "moved most"):
        assert rule in html
    assert "What now" in html


def test_retained_data_have_their_own_classes(tmp_path: Path) -> None:
    run = evaluated(tmp_path / "run", photos(tmp_path / "photos"), "retain", classes=("red", "green", "blue"))
    (data,) = paired_sets(read_run(run))
    assert data.classes == ("cat", "dog")
    assert URI.search(page_of(run))


def test_the_held_out_set_needs_no_evaluation(tmp_path: Path) -> None:
    place = photos(tmp_path / "photos", count=20)
    run = write_run(
        tmp_path / "run", classes=("cat", "dog"), data=str(place), held_out=str(place), retain="digits"
    )
    examples = load(place)
    label = torch.from_numpy(examples.labels)
    for weights, chosen in (("pretrained", 1 - label), ("result", label)):
        write_predictions(run, examples, chosen, weights, "held-out", "task")
    html = page_of(run)
    assert "Held-out images" in html
    assert URI.search(html)


@pytest.mark.parametrize("change", ["gone", "one is gone", "another label", "unreadable"])
def test_data_that_are_gone_or_changed_are_said_and_not_shown(tmp_path: Path, change: str) -> None:
    place = photos(tmp_path / "photos")
    run = evaluated(tmp_path / "run", place)
    (data,) = paired_sets(read_run(run))
    shown = data.after.ids[choose(data)[0].rows[0]]
    if change == "gone":
        place.rename(tmp_path / "elsewhere")
    elif change == "one is gone":
        (place / shown).unlink()
    elif change == "another label":
        for name in ("cat", "dog"):
            (place / name).rename(place / f"{name}-")
        (place / "cat-").rename(place / "dog")
        (place / "dog-").rename(place / "cat")
    else:
        (place / shown).write_bytes(b"no image")
    html = page_of(run)
    assert "No images are shown: " in html
    assert not URI.search(html)
    assert "Gain and loss by class" in html, "the numbers do not need the images"


@pytest.mark.parametrize("spec", ["hf:someone/photos", "https://example.org/x.tar", "s3://bucket/{0..9}.tar"])
def test_a_report_downloads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: str) -> None:
    run = evaluated(tmp_path / "run", photos(tmp_path / "photos"))
    monkeypatch.setattr(images, "examples_of", lambda *_: pytest.fail("the data were opened"))
    (data,) = paired_sets(read_run(run))
    for source in ({"data": spec, "options": {}}, {"suite": "imagenet", "at": [f"val={spec}"]}):
        remote = replace(data, source=source)
        assert "a report downloads nothing" in gallery(read_run(run), remote).note


@pytest.mark.parametrize("damage", ["cut", "other images", "another question", "label outside", "not finite"])
def test_predictions_that_do_not_fit_are_left_out(tmp_path: Path, damage: str) -> None:
    run = evaluated(tmp_path / "run", photos(tmp_path / "photos"))
    place = run / "predictions" / "result"
    ((name, known),) = answers(place).items()
    logits, label, ids = predictions(place, name)
    if damage == "cut":
        file = next(place.glob("*.safetensors"))
        file.write_bytes(file.read_bytes()[:-9])
    else:
        changed = {
            "other images": (Predictions(logits, label, [*ids[1:], "new"]), known.key),
            "another question": (known.predictions, known.key._replace(labels="others")),
            "label outside": (Predictions(logits, label + 1, ids), known.key),
            "not finite": (Predictions(logits / 0, label, ids), known.key),
        }
        predicted, key = changed[damage]
        Store(place).write(replace(known, predictions=predicted, key=key))
    assert [*paired_sets(read_run(run))] == []
    assert "What changed" not in page_of(run)


def test_names_of_classes_and_files_are_text(tmp_path: Path) -> None:
    hostile = "<script>x()<script>\"' onerror=x"
    run = evaluated(
        tmp_path / "run", photos(tmp_path / "photos", names=(hostile, "dog")), classes=(hostile, "dog")
    )
    html = page_of(run)
    assert URI.search(html)
    assert "<script>x()" not in html
    assert len(re.findall(r"<script", html)) == 2


def test_ten_images_are_too_few_to_tell(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", accuracy=(0.3, 0.5))
    description = json.loads((run / "experiment.json").read_text())
    description["data"]["held_out"] = 10
    (run / "experiment.json").write_text(json.dumps(description))
    html = page_of(run)
    assert "30.0 → 50.0 % of 10 held-out images, too few to tell" in html
    assert "10 images" in html
    assert "tracer eval" in html.split("What now")[1].split("</section>")[0]


def test_unknown_sources_are_errors_not_crashes(tmp_path: Path) -> None:
    run = read_run(evaluated(tmp_path / "run", photos(tmp_path / "photos")))
    (data,) = paired_sets(run)
    classes, unknown = {"classes": "/etc/hostname"}, {"nonsense": 1}
    sources: list[dict] = [
        {},
        {"suite": "nonsense"},
        {"data": "nowhere"},
        {"stray": 1},
        {"suite": "imagenet", "root": 3},
    ]
    sources += [{"data": data.name, "options": options} for options in (classes, unknown, [])]
    for source in sources:
        other = replace(data, source=source)
        with pytest.raises(UserError):
            images.thumbnails(run, other, [0])
