"""The page of a real sweep, as `tracer sweep` leaves it, in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import Browser, chromium
from sweep.test_sweep import mine as mine  # a recipe of a model that trains in a second

from tracer.cli import app as cli
from tracer.runs.record import read

pytestmark = pytest.mark.skipif(chromium() is None, reason="no Chromium here: apt-get install chromium")


@pytest.mark.slow  # a sweep and a browser; `test_browser.py` opens the page of runs
def test_the_page_of_a_real_sweep(mine: str, tmp_path: Path) -> None:
    folder = tmp_path / "sweep"
    sweep = ["sweep", mine, "--out", str(folder), "--device", "cpu", "--steps", "3", "--seeds", "1"]
    assert cli.main(sweep) == 0
    page = folder / "report.html"
    assert page.stat().st_size < 5e6
    with Browser(tmp_path / "chromium") as browser:
        browser.open(page)
        assert browser.complaints == []
        fetched = [address for address in browser.requests if not address.startswith("data:")]
        assert fetched == [page.resolve().as_uri()]  # images are embedded in the page
        rows = browser.value(
            "[...document.querySelector('table').tBodies[0].rows].map(r => r.cells[0].innerText)"
        )
        assert [row.strip() for row in rows] == ["Pretrained", "TRACER · beta 0.5", "TRACER · beta 1"]
        tabs = browser.value("[...document.querySelectorAll('[role=tab]')].map(t => t.textContent)")
        assert tabs[:3] == ["Learning", "Teacher", "Loss terms"]
        browser.value("document.getElementById('g1-loss').focus()")
        browser.press("ArrowRight")
        shown = browser.value("document.querySelector('#g1-loss .tip').innerText")
        first = next(iter(read(next(folder.glob("[!s]*/log.jsonl")), "train")))
        assert shown.startswith(f"step {first['step']}")
        assert f"{first['loss']:.4g}" in shown
