"""The sentence on top of a report: the mean over test sets, in which the same images count once."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from written import write_run, write_scores

from tracer.evaluation.verdict import Change
from tracer.report.comparison import compare
from tracer.report.headline import best_setting, headline, setting_verdict
from tracer.report.measures import SUITE, Key
from tracer.report.run_data import read_run

FIRST = Change.of([True] * 40 + [False] * 60, [True] * 70 + [False] * 30)
SECOND = Change.of([True] * 50 + [False] * 50, [True] * 60 + [False] * 40)


def verdict(**sets: Change):
    changes = {Key.of(SUITE, "id", name, "accuracy"): change for name, change in sets.items()}
    setting: Any = SimpleNamespace(changes=changes)
    outcome = setting_verdict(setting)
    assert outcome is not None
    return outcome


def test_one_test_set_under_two_names_counts_once() -> None:
    assert verdict(photos=FIRST, again=FIRST).task == FIRST
    both = verdict(photos=FIRST, others=SECOND, again=FIRST).task
    assert both.n == 200
    assert both.difference.half_width < FIRST.difference.half_width


def compared(folder: Path, scores: list[dict[str, tuple[str, float]]]) -> tuple[str, str]:
    """The headline of two runs of 90 and 80 % held-out accuracy, evaluated so, and the title of the best."""
    for method, reached, own in zip(("tracer", "flyp"), (0.9, 0.8), scores, strict=True):
        run = write_run(folder / method, method=method, accuracy=(0.5, reached))
        for weights in ("pretrained", "result") if own else ():
            write_scores(run, own, weights, n=40 + 10 * len(own))
    (group,) = compare([read_run(folder / name) for name in ("tracer", "flyp")])
    return headline(group), best_setting(list(group.settings)).label


def test_retained_sets_stand_in_their_order_where_their_images_are_not_counted(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a")
    scores = {"accuracy": 0.5, "retain": {"pets": 0.5, "cars": 0.6, "food": 0.7}}
    (run / "result.json").write_text(json.dumps({"before": scores, "after": scores}))
    (group,) = compare([read_run(run)])
    names = re.findall(r"; (\w+): [^;]*, on an unknown number of images", headline(group))
    assert names == ["pets", "cars", "food"]


def test_settings_are_compared_on_what_all_were_measured_on(tmp_path: Path) -> None:
    """A test set of one run is harder or easier than what another run was measured on."""
    hard, easy = {"hard": ("id", 0.3)}, {"easy": ("id", 1.0)}
    for number, scores in enumerate(([hard, {}], [{}, easy], [hard, easy], [hard, hard | easy])):
        sentence, best = compared(tmp_path / str(number), scores)
        assert sentence.startswith("TRACER reaches 90.0 "), sentence
        assert "30.0" not in sentence
        assert best == "TRACER"
    sentence, best = compared(tmp_path / "both", [hard, {"hard": ("id", 0.6)}])
    assert sentence.startswith("FLYP reaches 60.0 ")
    assert best == "FLYP"


def test_retention_is_compared_on_data_that_all_were_measured_on(tmp_path: Path) -> None:
    for name, retain in (("tracer", "digits"), ("flyp", "pets")):
        write_run(tmp_path / name, method=name, retain=retain)
    (group,) = compare([read_run(tmp_path / name) for name in ("tracer", "flyp")])
    assert "Nothing that should be retained was measured in all of them" in headline(group)
    assert "keeps more" not in headline(group)
