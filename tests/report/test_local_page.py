"""The page of `tracer try` is of this machine alone: real requests on loopback, and the files it leaves."""

from __future__ import annotations

import http.client
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from PIL import Image

from tracer.report.interactive.local import is_local, own_folder

BOUNDARY = "0123456789abcdef"
UPLOAD = (
    f'--{BOUNDARY}\r\ncontent-disposition: form-data; name="files"; filename="a.png"\r\n'
    f"content-type: image/png\r\n\r\nPNG\r\n--{BOUNDARY}--\r\n"
).encode()
FORM = {"content-type": f"multipart/form-data; boundary={BOUNDARY}"}


class Pictures:
    """What the page asks of a comparison, without models."""

    title, classes = "a run", ("cat", "dog")
    examples = range(3)

    def image(self, index: int) -> Image.Image:
        return Image.new("RGB", (8, 8), (80 * index, 0, 0))

    def changed(self, most: int = 0) -> list[object]:
        return []


class Page(NamedTuple):
    port: int
    folder: Path
    temporary: Path


class Answer(NamedTuple):
    status: int
    content: bytes
    headers: dict[str, str]


def serve() -> None:
    """The page until the input ends, in a process of its own: the library leaves sockets open."""
    from tracer.report.interactive.page import served

    anything: Any = Pictures()
    with served([anything], 0) as (_, address):
        print(address, flush=True)
        sys.stdin.read()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    temporary = tmp_path_factory.mktemp("temporary")
    places = [str(place) for place in Path(__file__).parents[1:3]]
    environment = {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": os.pathsep.join(places)}
    command = [sys.executable, "-c", "from report.test_local_page import serve; serve()"]
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout"), subprocess.PIPE)
    with subprocess.Popen(command, env=environment, **pipes) as process:
        assert process.stdout is not None
        address = process.stdout.readline().decode().strip()
        (folder,) = temporary.glob("tracer-*")
        yield Page(int(address.rstrip("/").rpartition(":")[2]), folder, temporary)
        process.kill()
    assert emptied(temporary)  # uploads and held-out images are gone with the page


def emptied(folder: Path) -> bool:
    """Whether no file is in the folder any more; what removes them may need a moment."""
    for _ in range(600):
        if not [*folder.glob("tracer-*")]:
            return not [path for path in folder.rglob("*") if path.is_file()]
        time.sleep(0.1)
    return False


def request(
    page: Page, path: str = "/", method: str = "GET", body: bytes | None = None, **headers: str
) -> Answer:
    sent = {"host": f"127.0.0.1:{page.port}"}
    sent |= {name.replace("_", "-"): value.format(port=page.port) for name, value in headers.items()}
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=60)
    connection.request(method, quote(path, safe="/="), body, sent)
    answer = connection.getresponse()
    result = Answer(
        answer.status, answer.read(), {name.lower(): value for name, value in answer.getheaders()}
    )
    connection.close()
    return result


FOREIGN = [
    {"host": "evil.example:{port}"},
    {"host": "evil.example"},
    {"host": "127.0.0.1.evil.example:{port}"},
    {"host": "localhost.evil.example"},
    {"host": "evil.example@127.0.0.1:{port}"},
    {"host": "0.0.0.0:{port}"},
    {"host": ""},
    {"origin": "http://evil.example:{port}"},
    {"origin": "http://127.0.0.1:1"},
    {"origin": "https://127.0.0.1:{port}"},
    {"origin": "http://localhost:{port}"},
    {"origin": "null"},
    {"host": "evil.example:{port}", "origin": "http://evil.example:{port}"},
    {"sec_fetch_site": "cross-site", "sec_fetch_mode": "no-cors"},
    {"sec_fetch_site": "same-site", "sec_fetch_mode": "cors"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_a_foreign_page_gets_no_answer(page: Page, headers: dict[str, str]) -> None:
    """Of the page, its settings, a held-out image and an upload, and no word that it might ask."""
    image = next(path for path in page.folder.rglob("*") if path.is_file())
    asked = [
        ("/", "GET", None),
        ("/config", "GET", None),
        (f"/gradio_api/file={image}", "GET", None),
        ("/gradio_api/upload", "POST", UPLOAD),
        ("/gradio_api/upload", "OPTIONS", None),
    ]
    before = sorted(page.folder.rglob("*"))
    for path, method, body in asked:
        more = {**FORM, **headers} if body else {"access-control-request-method": "POST", **headers}
        answer = request(page, path, method, body, **more)
        assert answer.status == 403
        assert answer.content == b"this page is for this machine alone"
        assert not [name for name in answer.headers if name.startswith("access-control")]
    assert sorted(page.folder.rglob("*")) == before


def test_its_own_page_works(page: Page) -> None:
    """By address and by name, with the headers of a browser; it may be linked to and is not framed."""
    for host in ("127.0.0.1:{port}", "localhost:{port}", "LOCALHOST:{port}"):
        answer = request(page, host=host, sec_fetch_site="cross-site", sec_fetch_mode="navigate")
        assert answer.status == 200
        policy = answer.headers["content-security-policy"]
        assert policy.count("default-src 'self'") == 1
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        own = {"host": host, "origin": f"http://{host.lower()}", "sec_fetch_site": "same-origin", **FORM}
        (place,) = json.loads(request(page, "/gradio_api/upload", "POST", UPLOAD, **own).content)
        assert page.folder in Path(place).parents
        image = request(page, f"/gradio_api/file={place}", host=host, sec_fetch_site="same-origin")
        assert image[:2] == (200, b"PNG")


def test_its_files_are_the_users_alone(page: Page) -> None:
    assert stat.S_IMODE(page.folder.stat().st_mode) == 0o700
    files = [path for path in page.temporary.rglob("*") if path.is_file()]
    assert files
    assert all(page.folder in path.parents for path in files)


def test_a_request_is_judged_by_all_of_its_headers() -> None:
    host = (b"host", b"127.0.0.1:1")
    assert is_local("GET", [host])
    assert not is_local("GET", [])
    assert not is_local("GET", [host, (b"Host", b"evil.example")])
    assert not is_local(
        "POST", [host, (b"Origin", b"http://127.0.0.1:1"), (b"origin", b"http://evil.example")]
    )
    assert not is_local("POST", [host, (b"sec-fetch-site", b"cross-site"), (b"sec-fetch-mode", b"navigate")])


@pytest.mark.parametrize("how", [None, signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_its_folder_goes_however_the_page_ends(how: signal.Signals | None, tmp_path: Path) -> None:
    code = (
        "import sys; from tracer.report.interactive.local import own_folder\n"
        "with own_folder() as folder:\n"
        "    (folder / 'image.png').write_text('a'); print(folder, flush=True); sys.stdin.read()"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", code]
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, env=environment, **pipes) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().decode().strip())
        assert folder.parent == tmp_path
        if how is not None:
            process.send_signal(how)
    assert emptied(tmp_path)


def test_an_error_removes_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(RuntimeError), own_folder():
        raise RuntimeError
    assert [*tmp_path.iterdir()] == []
