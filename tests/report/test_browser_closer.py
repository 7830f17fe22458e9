"""Images, classes and confusions in a real browser: shown, readable, and inside the page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from browser import Browser, chromium
from test_closer import evaluated
from written import photos

from tracer.data.sources import load
from tracer.report import write_report

pytestmark = pytest.mark.skipif(chromium() is None, reason="no Chromium here: apt-get install chromium")

LONG = "Averylongnameofaclasswithoutanyspaceinitthatnotableorcaptioncanholdonaphone <img src=x onerror=y()>"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A run on two classes, one of which has a name that is long and hostile."""
    folder = tmp_path_factory.mktemp("runs")
    place = photos(folder / "photos", names=(LONG, "dog"))
    run = evaluated(folder / "run", place, classes=tuple(load(place).classes))
    write_report([run], folder / "report.html")
    with Browser(tmp_path_factory.mktemp("profile") / "chromium") as browser:
        browser.size(1300, 900)
        browser.open(folder / "report.html")
        yield browser
        assert browser.complaints == []


def test_every_image_is_shown_with_its_name(browser: Browser) -> None:
    images = "[...document.querySelectorAll('img')]"
    browser.value(f"Promise.all({images}.map(i => i.decode())).then(() => 1)")
    assert browser.value(f"{images}.length") == 19, (
        "seven learned, seven mistakes, and five more that changed"
    )
    assert browser.value(f"{images}.every(i => i.naturalWidth === 96 && i.alt)")
    assert browser.value("document.querySelectorAll('img[src=x]').length") == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 390, 768, 1300])
def test_nothing_sticks_out_of_the_page(browser: Browser, width: int, theme: str) -> None:
    browser.prefer(theme)
    browser.size(width, 800, phone=width < 500)
    assert browser.value("document.documentElement.scrollWidth") <= width
    texts = "[...document.querySelectorAll('.pictures li, .next, h1, .levels')]"
    assert browser.value(f"{texts}.filter(e => e.scrollWidth > e.clientWidth + 1).length") == 0


def test_what_now_is_unfolded_and_above_the_fold(browser: Browser) -> None:
    browser.size(1300, 900)
    assert browser.value("document.querySelector('.next').closest('details')") is None
    assert browser.value("document.querySelector('.next code').getBoundingClientRect().bottom") < 900


def test_a_printed_page_fits_its_sheet(browser: Browser) -> None:
    browser.size(1031, 700)
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert browser.value("document.documentElement.scrollWidth") <= 1031
    browser.call("Emulation.setEmulatedMedia", media="")


def test_classes_sort_by_keyboard_and_counts_can_be_read_on_their_shade(browser: Browser) -> None:
    browser.size(1300, 900)
    tables = "[...document.querySelectorAll('table.compact')]"
    browser.value(f"{tables}[0].querySelectorAll('thead button')[0].focus()")
    browser.press("Enter")
    assert browser.value(f"{tables}[0].querySelector('thead th').getAttribute('aria-sort')") == "ascending"
    for theme in ("light", "dark"):
        browser.prefer(theme)
        cells = browser.value(
            "[...document.querySelectorAll('.matrix td[class*=h]')].map(cell => {"
            "const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});"
            "return ['color', 'backgroundColor'].map(name => { canvas.fillStyle = getComputedStyle(cell)[name];"
            "canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3); }); })"
        )
        assert len(cells) == 4
        for ink, paper in cells:
            lighter, darker = sorted((_luminance(ink), _luminance(paper)), reverse=True)
            assert (lighter + 0.05) / (darker + 0.05) >= 4.5


def _luminance(colour: list[int]) -> float:
    parts = torch.tensor(colour) / 255
    linear = torch.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ torch.tensor([0.2126, 0.7152, 0.0722]))
