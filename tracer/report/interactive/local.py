"""A page of this machine for this machine: whom it answers, and where its files lie."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

ADDRESS = "127.0.0.1"
HOSTS = (ADDRESS, "localhost")
# The browser loads nothing from elsewhere, whatever the library's page asks for, and no other page frames this one.
HEADERS = {
    b"content-security-policy": b"default-src 'self' data: blob: 'unsafe-inline' 'unsafe-eval'; frame-ancestors 'none'",
    b"cross-origin-resource-policy": b"same-origin",
}
REFUSED = b"this page is for this machine alone"
# Waits until the process that holds the other end of its input is gone, however it went.
REMOVE = "import shutil, sys; sys.stdin.read(); shutil.rmtree(sys.argv[1], ignore_errors=True)"


class Local:
    """Middleware that answers pages of this very server, and programs of this machine that name it by its address.

    A foreign name that leads here (DNS rebinding) is refused, and so is what a foreign page asks for, but for a link
    to this page; no answer lets another origin read it.
    """

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                own = [pair for pair in message["headers"] if not _replaced(pair[0].lower())]
                message["headers"] = [*own, *HEADERS.items()]
            await send(message)

        if scope["type"] == "lifespan" or is_local(scope.get("method", ""), scope["headers"]):
            await self.app(scope, receive, guarded)
        elif scope["type"] == "http":
            await guarded({"type": "http.response.start", "status": 403, "headers": []})
            await send({"type": "http.response.body", "body": REFUSED})
        else:
            await send({"type": "websocket.close", "code": 1008})


def is_local(method: str, headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a request with these headers is of this machine, and of a page of this server if it is of a page."""
    fields: dict[str, list[str]] = {}
    for name, value in headers:
        fields.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1").strip().lower())
    hosts = fields.get("host", [])
    if len(hosts) != 1 or hosts[0].partition(":")[0] not in HOSTS:
        return False
    if any(origin != f"http://{hosts[0]}" for origin in fields.get("origin", ())):
        return False
    link = method == "GET" and fields.get("sec-fetch-mode") == ["navigate"]
    return link or all(site in ("same-origin", "none") for site in fields.get("sec-fetch-site", ()))


def _replaced(header: bytes) -> bool:
    return header in HEADERS or header.startswith(b"access-control-")


@contextmanager
def own_folder() -> Iterator[Path]:
    """A temporary folder that no other user can read, removed at the end, also if this process is killed."""
    folder = Path(mkdtemp(prefix="tracer-"))  # 0700
    command = [sys.executable, "-I", "-S", "-c", REMOVE, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True):
        yield folder  # `with` closes its input at the end, and waits for it
