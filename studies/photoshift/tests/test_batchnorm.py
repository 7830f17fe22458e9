"""The study of BatchNorm statistics: its page shows its results, and its pictures are apart."""

from __future__ import annotations

import json
from pathlib import Path

from studies.photoshift.batchnorm import RESULTS, SEEDS, cases, chosen, table

PAGE = Path(__file__).parents[3] / "docs" / "adapters.md"


def test_the_page_shows_the_stored_results() -> None:
    known = json.loads(RESULTS.read_text())
    assert table(known["starts"], known["rows"]) in PAGE.read_text(encoding="utf-8")


def test_every_case_is_stored_once() -> None:
    rows = json.loads(RESULTS.read_text())["rows"]
    stored = [tuple(row[name] for name in ("tower", "steps", "rate", "setting", "seed")) for row in rows]
    assert sorted(stored) == sorted(map(tuple, cases()))


def test_the_rate_is_chosen_on_held_out_pictures_of_all_seeds() -> None:
    held_out = {3e-5: (50, 60, 70), 3e-4: (90, 50, 40), 1e-3: (10, 10, 10)}
    rows = [
        {"rate": rate, "seed": seed, "held_out": hits[seed]}
        for rate, hits in held_out.items()
        for seed in range(SEEDS)
    ]
    assert {row["rate"] for row in chosen(rows)} == {3e-5}, "of equals the lower"
