"""`tracer try` in Chromium with a real run: what a person does on the page, and nothing asked of another machine."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import pytest
from browser import Browser, chromium
from PIL import Image

import tracer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(chromium() is None, reason="no Chromium here: apt-get install chromium"),
]
CLICK = "[...document.querySelectorAll('button')].find(b => b.textContent.trim() === {}).click()"
# By its role: Gradio keeps a second, hidden row of buttons to measure how many tabs fit.
TAB = "[...document.querySelectorAll('[role=tab]')].find(tab => tab.textContent.trim() === {}).click()"
SEARCHED = "[...document.querySelectorAll('button.thumbnail-item img')].filter(e => e.offsetParent)"
CUT_OFF = """[...document.querySelectorAll('button.thumbnail-item, table, figure, [role=tab]')]
    .filter(e => e.offsetParent && e.getBoundingClientRect().right > (e.closest('.grid-wrap') ?? document.body)
        .getBoundingClientRect().right).length"""
TYPE = """(() => {{
    const box = [...document.querySelectorAll('textarea, input')].filter(e => e.offsetParent)
        .find(e => e.closest('label')?.textContent.includes({label}));
    const kind = box.tagName === 'TEXTAREA' ? HTMLTextAreaElement : HTMLInputElement;
    Object.getOwnPropertyDescriptor(kind.prototype, 'value').set.call(box, {text});
    box.dispatchEvent(new Event('input', {{bubbles: true}}));
}})()"""
UPLOAD = """(async () => {{
    const bytes = Uint8Array.from(atob({content}), c => c.charCodeAt(0));
    const files = new DataTransfer();
    files.items.add(new File([bytes], {name}, {{type: 'image/png'}}));
    const input = document.querySelector('input[type=file]');
    input.files = files.files;
    input.dispatchEvent(new Event('change', {{bubbles: true}}));
}})()"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, some_digits: Path) -> Iterator[str]:
    """The page of a run, served by the command itself in a process of its own."""
    folder = tmp_path_factory.mktemp("try")
    settings = {"model": "tiny-28", "pretrained": "none", "steps": 8, "batch": 32, "device": "cpu"}
    run = tracer.finetune(some_digits, method="ft", out=folder / "run", callback=id, workers=0, **settings)
    command = [sys.executable, "-m", "tracer", "try", str(run.folder)]
    environment = {**os.environ, "COLUMNS": "200"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        (found,) = re.findall(r"http://\S+", process.stdout.readline())
        yield found
        process.terminate()


def test_what_a_person_does_on_the_page(address: str, tmp_path: Path) -> None:
    assert address.startswith("http://127.0.0.1:")
    with urlopen(address) as answer:
        assert "default-src 'self'" in answer.headers["content-security-policy"]
    (tmp_path / "profile").mkdir()
    with Browser(tmp_path / "profile" / "chromium") as browser:
        browser.size(1300, 1000)
        browser.call("Page.navigate", url=address)
        wait(browser, "document.querySelectorAll('button.thumbnail-item').length > 4")

        # One of the run's own images, with its ten classes.
        browser.value("document.querySelector('button.thumbnail-item').click()")
        wait(browser, "document.querySelector('.image-frame img, .image-container img')")
        browser.value(CLICK.format('"Compare"'))
        wait(browser, "document.querySelectorAll('table tr').length === 11")
        browser.screenshot(tmp_path / "names.png")

        # Names of one's own, on an image of one's own.
        browser.value(TYPE.format(label='"Names"', text=json.dumps("a cat\na <b>dog</b>\na house")))
        browser.value(
            'document.querySelector(\'button[aria-label="Clear"], button[title="Clear"]\')?.click()'
        )
        wait(browser, "document.querySelector('input[type=file]')")
        browser.value(UPLOAD.format(content=json.dumps(picture(28)), name='"small.png"'))
        wait(browser, "document.querySelector('.image-frame img, .image-container img')")
        browser.value(CLICK.format('"Compare"'))
        wait(browser, "document.querySelectorAll('table tr').length === 4")
        assert "a <b>dog</b>" in browser.value("document.querySelector('table').innerText")

        # A text finds images by both models; the key Enter is enough.
        browser.value(TAB.format('"Search"'))
        wait(browser, "[...document.querySelectorAll('h3')].some(e => e.offsetParent)")
        browser.value(TYPE.format(label='"A text"', text='"the digit 3"'))
        browser.value("document.activeElement.blur()")
        browser.value("[...document.querySelectorAll('textarea, input')].find(e => e.offsetParent).focus()")
        browser.press("Enter")
        wait(browser, f"{SEARCHED}.length === 16")
        browser.screenshot(tmp_path / "search.png")

        browser.value(TAB.format('"Changes"'))
        wait(browser, "[...document.querySelectorAll('h3')].filter(e => e.offsetParent).length === 2")
        assert "Held-out images\n" in browser.value("document.body.innerText")
        browser.screenshot(tmp_path / "changes.png")

        for width, phone in ((1300, False), (390, True)):
            browser.size(width, 900, phone=phone)
            for tab in ("Name", "Search", "Changes"):
                browser.value(TAB.format(json.dumps(tab)))
                time.sleep(0.5)
                assert browser.value(CUT_OFF) == 0, (width, tab)

        sent = [each["params"] for each in browser.events if each["method"] == "Network.requestWillBeSent"]
        urls = {each["request"]["url"] for each in sent}
        hosts = {url.split("/")[2] for url in urls if url.startswith(("http", "ws"))}
        assert {host.partition(":")[0] for host in hosts} == {"127.0.0.1"}


def test_an_upload_above_the_bound_is_refused(address: str) -> None:
    content = b"\0" * (11 << 20)
    head = b'--x\r\nContent-Disposition: form-data; name="files"; filename="big.png"\r\n\r\n'
    command = ["curl", "-s", "-o", os.devnull, "-w", "%{http_code}", "--data-binary", "@-"]
    command += ["-H", "Content-Type: multipart/form-data; boundary=x", f"{address}gradio_api/upload"]
    codes = [
        subprocess.run(command, input=head + body + b"\r\n--x--\r\n", capture_output=True).stdout
        for body in (content[: 1 << 20], content)
    ]
    assert codes == [b"200", b"413"]


def picture(side: int) -> str:
    """A PNG of noise, in base64."""
    pixels = np.random.default_rng(0).integers(0, 255, (side, side, 3), dtype=np.uint8)
    stream = BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return base64.b64encode(stream.getvalue()).decode()


def wait(browser: Browser, condition: str, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not browser.value(f"Boolean({condition})"):  # an element itself would come back empty
        assert time.monotonic() < end, condition
        time.sleep(0.3)
