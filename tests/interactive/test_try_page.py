"""The page of `tracer try` in Chromium with a real run: it answers, and asks for nothing beyond this machine."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from urllib.request import urlopen

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "report"))
from browser import Browser, chromium

import tracer
from tracer.interactive.comparison import Comparison
from tracer.interactive.page import start

pytestmark = [
    pytest.mark.evidence,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(chromium() is None, reason="no Chromium here: apt-get install chromium"),
]
CLICK = "[...document.querySelectorAll('button')].find(b => b.textContent.trim() === '{}').click()"


def test_the_page_compares_finds_and_asks_for_nothing_elsewhere(tmp_path: Path) -> None:
    pytest.importorskip("gradio", reason="gradio is not installed: pip install 'tracer-clip[try]'")
    settings = {"model": "tiny-28", "pretrained": "none", "steps": 2, "batch": 32, "device": "cpu"}
    run = tracer.finetune("digits:coloured", out=tmp_path / "a", callback=id, **settings)
    blocks, address = start([Comparison(run)], 0)
    try:
        assert address.startswith("http://127.0.0.1:")
        assert "default-src 'self'" in urlopen(address).headers["content-security-policy"]
        (tmp_path / "profile").mkdir()
        with Browser(tmp_path / "profile" / "chromium") as browser:
            browser.size(1300, 1000)
            browser.call("Page.navigate", url=address)
            wait(browser, "document.querySelectorAll('button.thumbnail-item').length > 4")
            browser.value("document.querySelector('button.thumbnail-item').click()")
            wait(browser, "document.querySelector('.image-frame img, .image-container img')")
            browser.value(CLICK.format("Compare"))
            wait(browser, "document.querySelectorAll('table tr').length === 11")
            browser.screenshot(tmp_path / "page.png")
            sent = [
                event["params"] for event in browser.events if event["method"] == "Network.responseReceived"
            ]
            hosts = {
                each["response"]["url"].split("/")[2] for each in sent if "//" in each["response"]["url"]
            }
            assert {host.partition(":")[0] for host in hosts} == {"127.0.0.1"}
    finally:
        blocks.close()


def wait(browser: Browser, condition: str, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not browser.value(condition):
        assert time.monotonic() < end, condition
        time.sleep(0.3)
