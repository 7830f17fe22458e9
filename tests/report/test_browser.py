"""The page in a real browser: silent console, no network, sorting, tabs and theme by keyboard, harmless names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser, chromium
from written import write_run, write_scores

from tracer.report import write_report

pytestmark = pytest.mark.skipif(chromium() is None, reason="no Chromium here: apt-get install chromium")

HOSTILE = "<img src=x onerror=\"document.title='owned'\"></script><script>document.title='owned'</script>"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five settings, one with three seeds, hostile names, an analysis, and one run on other data."""
    folder = tmp_path_factory.mktemp("runs")
    runs = [
        write_run(folder / f"tracer-{seed}", seed=seed, accuracy=(0.5, 0.9 + seed / 100)) for seed in range(3)
    ]
    runs += [
        write_run(
            folder / f"beta-{beta}", options={"beta": beta}, accuracy=(0.5, beta), kept=(0.95, 0.9 - beta / 9)
        )
        for beta in (0.2, 0.7)
    ]
    for i, folder_ in enumerate(runs[:4]):
        result = json.loads((folder_ / "result.json").read_text())
        result["warnings"] = [f"{HOSTILE} fell to {i} %"]
        (folder_ / "result.json").write_text(json.dumps(result))
    runs.append(write_run(folder / "<b>flyp", method="flyp", classes=("red", "green"), accuracy=(0.5, 0.7)))
    runs.append(
        write_run(folder / "other", data=HOSTILE, retain=HOSTILE, classes=(HOSTILE,), fingerprint="x")
    )
    analysis = {
        "layers": [{"layer": f"{HOSTILE} {i}", "cka": 1 - i / 9, "svcca": 1 - i / 7} for i in range(3)],
        "path": [
            {"alpha": i / 4, "accuracy": 0.5 + i / 10, "retain": {"digits": 0.95 - i / 80}} for i in range(5)
        ],
        "reliability": {"after": [{"confidence": 0.5, "accuracy": 0.4, "size": 9}]},
    }
    (folder / "tracer-0" / "analysis.json").write_text(json.dumps(analysis))
    sets = {HOSTILE: ("id", 0.8), **{f"shift {i}": ("ood", 0.5 + i / 20) for i in range(6)}}
    for run in runs[:4]:
        write_scores(run, sets)
        write_scores(run, sets, "pretrained")
    out = folder / "report.html"
    write_report(runs, out)
    return out


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile") / "chromium") as browser:
        yield browser


@pytest.fixture
def browser(running: Browser, page: Path) -> Iterator[Browser]:
    """The page, opened anew; whatever a test does, nothing may complain and nothing may be asked for."""
    running.size(1280, 900)
    running.prefer("light")
    running.value("try { sessionStorage.clear() } catch {}")
    running.open(page)
    yield running
    assert running.complaints == []
    assert running.requests == [page.resolve().as_uri()]
    assert running.value("document.title").startswith("TRACER")


def column(browser: Browser, index: int) -> list[str]:
    cells = (
        f"[...document.querySelector('table').tBodies[0].rows].map(row => row.cells[{index}].dataset.order)"
    )
    return browser.value(cells)


def focused(browser: Browser) -> str:
    return browser.value("document.activeElement.textContent")


def test_the_table_sorts_by_keyboard_both_ways(browser: Browser) -> None:
    pretrained, *scores = column(browser, 1)
    assert [float(score) for score in scores] != sorted((float(score) for score in scores), reverse=True)
    browser.value("document.querySelectorAll('thead button')[1].focus()")
    for way, reverse in (("descending", True), ("ascending", False)):
        browser.press("Enter")
        first, *rest = column(browser, 1)
        assert first == pretrained, "the pretrained model stays on top"
        assert sorted(rest) == sorted(scores)
        assert [float(score) for score in rest] == sorted((float(score) for score in rest), reverse=reverse)
        assert browser.value("document.querySelectorAll('thead th')[1].getAttribute('aria-sort')") == way


def test_tab_reaches_every_control(browser: Browser) -> None:
    seen = set()
    for _ in range(60):
        browser.press("Tab")
        seen.add(browser.value("document.activeElement.id || document.activeElement.tagName"))
    assert {"theme", "BUTTON", "g1-frontier", "tab-1-1"} <= seen


def test_tabs_move_by_arrows(browser: Browser) -> None:
    browser.value("document.getElementById('tab-1-1').focus()")
    browser.press("ArrowRight")
    assert focused(browser) == "Teacher"
    assert browser.value("document.getElementById('panel-1-1').hidden")
    assert not browser.value("document.getElementById('panel-1-2').hidden")
    browser.press("End")
    assert focused(browser) == "Representation"
    browser.press("ArrowRight")
    assert focused(browser) == "Learning"


def test_the_theme_changes_by_keyboard(browser: Browser) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    light = browser.value(paper)
    browser.value("document.getElementById('theme').focus()")
    browser.press("Enter")
    assert browser.value(paper) == light
    browser.press("Enter")
    assert browser.value("document.documentElement.dataset.theme") == "dark"
    dark = browser.value(paper)
    assert dark != light
    browser.press("Enter")
    browser.prefer("dark")
    assert browser.value(paper) == dark, "and the system's wish is followed"


def test_values_are_read_by_arrow_keys_and_pointer(browser: Browser) -> None:
    browser.value("document.getElementById('g1-accuracy').focus()")
    browser.press("ArrowRight")
    tip = "document.querySelector('#g1-accuracy .tip').textContent"
    assert browser.value(tip).startswith("step 2")
    browser.press("ArrowRight")
    assert browser.value(tip).startswith("step 4")
    middle = "document.querySelector('#g1-accuracy svg').getBoundingClientRect()"
    x, y = (
        browser.value(f"{middle}.{side} + {middle}.{size} / 2")
        for side, size in (("x", "width"), ("y", "height"))
    )
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    assert browser.value(tip).startswith("step 1")


def test_a_setting_can_be_hidden_everywhere(browser: Browser) -> None:
    shown = "document.querySelectorAll('#g1-accuracy g.series:not(.off)').length"
    before = browser.value(shown)
    browser.value("document.querySelector('.legend button').focus()")
    browser.press("Enter")
    assert browser.value(shown) == before - 1
    assert browser.value("document.querySelector('.legend button').getAttribute('aria-pressed')") == "false"


def test_hostile_names_do_nothing(browser: Browser) -> None:
    assert browser.value("document.querySelectorAll('img, script[src], b, iframe').length") == 0
    assert browser.value("document.scripts.length") == 2
    assert "<img src=x onerror" in browser.value("document.body.textContent")
    browser.value("document.querySelectorAll('figure').forEach(f => { f.focus(); f.dispatchEvent("
                  "new KeyboardEvent('keydown', {key: 'ArrowRight'})) })")  # fmt: skip
    assert browser.value("document.querySelectorAll('.tip b:not(:empty)').length") > 5
    assert browser.value("document.querySelectorAll('img').length") == 0


@pytest.mark.parametrize("width", [320, 375, 768, 1280])
def test_nothing_sticks_out_of_the_page(browser: Browser, width: int) -> None:
    browser.size(width, 800, phone=width < 500)
    assert browser.value("document.documentElement.scrollWidth") <= width


def test_a_printed_table_fits_the_sheet(browser: Browser) -> None:
    """A landscape sheet of A4 has 297 mm less two margins of 12: 1031 pixels."""
    browser.size(1031, 700)
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert browser.value("document.documentElement.scrollWidth") <= 1031
    browser.call("Emulation.setEmulatedMedia", media="")


def test_paper_shows_remarks_that_a_screen_folds_away(browser: Browser) -> None:
    browser.value("window.seen = []; addEventListener('beforeprint', () => seen.push(document.querySelectorAll("
                  "'details[open]').length))")  # fmt: skip
    folded = browser.value("document.querySelectorAll('details.note').length")
    browser.call("Page.printToPDF")
    assert browser.value("seen") == [folded]
    assert browser.value("document.querySelectorAll('details[open]').length") == 0


def test_print_shows_every_panel(browser: Browser) -> None:
    browser.call("Emulation.setEmulatedMedia", media="print")
    hidden = "[...document.querySelectorAll('[role=tabpanel]')].filter(p => p.offsetHeight === 0).length"
    assert browser.value(hidden) == 0
    browser.call("Emulation.setEmulatedMedia", media="")


def test_figures_and_tables_speak_to_screen_readers(browser: Browser) -> None:
    mute = "[...document.querySelectorAll('svg[role=img]')].filter(s => !s.querySelector('desc').textContent).length"
    assert browser.value(mute) == 0
    assert browser.value("[...document.querySelectorAll('table')].every(t => t.caption.textContent)")
    tree = browser.call("Accessibility.getFullAXTree")["nodes"]
    roles = {node["role"]["value"] for node in tree if not node["ignored"]}
    assert {"main", "banner", "contentinfo", "tablist", "tab", "tabpanel", "table", "columnheader"} <= roles
    unnamed = [
        node for node in tree
        if not node["ignored"] and node["role"]["value"] in ("button", "tab", "image", "figure")
        and not node.get("name", {}).get("value")
    ]  # fmt: skip
    assert unnamed == []
