"""Reliability diagrams show the pretrained model and the result, whatever else has been evaluated."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from written import write_answers, write_run

from tracer.measure.answers import Predictions
from tracer.report.calibration import reliability
from tracer.report.chart import Chart
from tracer.report.comparison import compare
from tracer.report.run_data import read_run


def predict(folder: Path, weights: str, right: int, data: str = "night") -> None:
    """Twenty predictions with one and the same confidence, of which some are right."""
    logits = torch.tensor([[1.0, 0.0]]).repeat(20, 1)
    label = (torch.arange(20) >= right).long()
    predictions = Predictions(logits, label, [str(i) for i in range(20)])
    hits = tuple(predictions.hits)
    write_answers(folder, weights, data, "ood", {"accuracy": right / 20}, predictions=predictions, hits=hits)


def diagrams(folder: Path) -> list[Chart]:
    (group,) = compare([read_run(folder)])
    return reliability(group)


def test_the_teachers_predictions_are_not_the_results(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a")
    for weights, right in (("pretrained", 8), ("result", 15), ("teacher", 3), ("student", 1)):
        predict(folder, weights, right)
    (chart,) = diagrams(folder)
    assert {series.name: [point.y for point in series.points] for series in chart.series} == {
        "before": [0.4],
        "after": [0.75],
    }
    assert chart.title == "TRACER on night"


def test_each_test_set_has_its_own_diagram_beside_the_analysis(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a")
    predict(folder, "result", 15)
    predict(folder, "result", 5, "fog")
    rows = {"after": [{"confidence": 0.5, "accuracy": 0.4, "size": 9}]}
    (folder / "analysis.json").write_text(json.dumps({"reliability": rows}))
    found = {chart.title: chart for chart in diagrams(folder)}
    assert list(found) == ["TRACER", "TRACER on night", "TRACER on fog"]
    assert len({chart.name for chart in found.values()}) == 3
    assert [[point.y for point in series.points] for series in found["TRACER on fog"].series] == [[0.25]]


def test_sets_have_their_own_names_and_what_was_analysed_is_not_shown_twice(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", held_out="digits:coloured")
    predict(folder, "result", 15, "digits:coloured")
    predict(folder, "result", 5, "digits:flipped")
    assert [chart.title for chart in diagrams(folder)] == [
        "TRACER on digits:coloured",
        "TRACER on digits:flipped",
    ]
    rows = {"after": [{"confidence": 0.5, "accuracy": 0.4, "size": 9}]}
    (folder / "analysis.json").write_text(json.dumps({"reliability": rows}))
    assert [chart.title for chart in diagrams(folder)] == ["TRACER", "TRACER on digits:flipped"]


def test_a_file_of_something_else_makes_no_diagram(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a")
    place = folder / "predictions" / "result"
    place.mkdir(parents=True)
    (place / "night.safetensors").write_bytes(b"nonsense")
    assert diagrams(folder) == []
