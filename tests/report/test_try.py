"""What the page of `tracer try` shows is what the evaluation measured; the page needs nothing but this machine."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
import torch
from closeness import length, same
from PIL import EpsImagePlugin, Image

import tracer
from tracer.cli.app import main
from tracer.core.errors import UserError
from tracer.report.interactive import page
from tracer.report.interactive.comparison import Comparison
from tracer.report.interactive.page import changes, name, search
from tracer.report.paired import paired_sets
from tracer.report.run_data import read_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tracer.Run:
    """A run whose result has a head; its pretrained model has none."""
    settings = {
        "model": "tiny-28",
        "pretrained": "none",
        "steps": 2,
        "batch": 32,
        "device": "cpu",
        "workers": 0,
    }
    out = tmp_path_factory.mktemp("runs") / "a"
    return tracer.finetune(
        "digits:coloured", method="ft", held_out_share=0.02, out=out, callback=id, **settings
    )


@pytest.fixture(scope="module")
def comparison(run: tracer.Run) -> Comparison:
    return Comparison(run)


def test_scores_are_those_of_the_evaluation(run: tracer.Run, comparison: Comparison) -> None:
    data = next(paired_sets(read_run(run.folder)))
    places = {each: i for i, each in enumerate(comparison.examples.ids)}
    for row in (0, 7):
        found = comparison.scores(comparison.image(places[data.after.ids[row]]), data.classes)
        assert [each.after for each in found] == sorted((each.after for each in found), reverse=True)
        by_name = {each.name: each for each in found}
        for shares, when in zip(data.shares, ("before", "after"), strict=True):
            own = torch.tensor([getattr(by_name[label], when) for label in data.classes])
            same(own, shares[row], length(comparison.scorers[0].student), size=10, dtype=torch.float32)


def test_edited_names_are_scored_by_their_text(comparison: Comparison) -> None:
    found = comparison.scores(comparison.image(0), ["a cat", " ", "a dog", "a cat"])
    assert {row.name for row in found} == {"a cat", "a dog"}
    assert sum(row.before for row in found) == pytest.approx(1)
    assert sum(row.after for row in found) == pytest.approx(1)
    with pytest.raises(UserError, match="not 1"):
        comparison.scores(comparison.image(0), ["a cat"])


@torch.no_grad()
def test_a_search_finds_the_nearest_images(comparison: Comparison) -> None:
    for scorer, found in zip(comparison.scorers, comparison.search("the digit 3", 5), strict=True):
        model = scorer.student
        text = model.embed_text(model.tokenise("the digit 3")).double()[0]
        count = len(comparison.examples)
        near = [
            float(model.embed_image(model.preprocess(comparison.image(i))).double()[0] @ text)
            for i in range(count)
        ]
        best = sorted(near, reverse=True)[:5]
        same([near[i] for i in found], best, length(model), size=1, dtype=torch.float32)


def test_learned_and_forgotten_are_counted(run: tracer.Run, comparison: Comparison) -> None:
    before, after = next(paired_sets(read_run(run.folder))).hits
    ((_, gallery),) = comparison.changed(most=2)
    learned, forgotten, *_ = gallery.strips
    assert learned.total == sum(b < a for b, a in zip(before, after, strict=True))
    assert forgotten.total == sum(b > a for b, a in zip(before, after, strict=True))
    assert len(learned.pictures) <= 2


def test_the_page_escapes_names_and_shows_problems_as_text(comparison: Comparison, tmp_path: Path) -> None:
    image = str(tmp_path / "image.png")
    comparison.image(0).save(image)
    table = name(comparison, image, "<img src=x>\na dog")
    assert "&lt;img src=x&gt;" in table
    assert "<img" not in table
    assert "not 1" in name(comparison, image, "a dog")
    assert "Drop an image" in name(comparison, None, "a\nb")
    assert search(comparison, " ") == ([], [], "<p>give a text to search for</p>")
    assert "Held-out images</h2>" in changes(comparison)
    assert "Forgotten (" in changes(comparison)
    assert "Most changed" not in changes(comparison)


def test_an_upload_starts_no_other_program(
    comparison: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Image.new("RGB", (8, 8)).save(tmp_path / "cat.jpg", "EPS")
    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", lambda *_, **__: pytest.fail("started"))
    assert "is no image of a known kind" in name(comparison, str(tmp_path / "cat.jpg"), "a\nb")
    # Gradio hands over the file as it came, without decoding it.
    assert 'type="filepath",\n                image_mode=None,' in inspect.getsource(page)


def test_what_cannot_be_tried_is_refused_before_the_page(
    run: tracer.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["try"]) == 2
    assert main(["try", str(run.folder), "--port", "70000"]) == 2
    assert main(["try", str(tmp_path)]) == 2
    errors = capsys.readouterr().err
    assert "tracer try needs RUNS: folders of finished runs" in errors
    assert "70000" in errors
