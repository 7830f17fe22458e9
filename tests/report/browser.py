"""Chromium by its DevTools protocol over a pair of pipes: no driver, no websocket, no dependency."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe"),
    *("--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
# The protocol wants file descriptors 3 and 4, whatever ours are; they are lifted first, lest one covers the other.
LAUNCH = """
import fcntl, os, sys
lifted = [fcntl.fcntl(int(fd), fcntl.F_DUPFD, 10) for fd in sys.argv[1:3]]
for fd, wanted in zip(lifted, (3, 4)):
    os.dup2(fd, wanted)
os.execvp(sys.argv[3], sys.argv[3:])
"""
KEYS = {"Enter": ("\r", 13), "Tab": ("", 9), "ArrowRight": ("", 39), "ArrowLeft": ("", 37), "End": ("", 35)}


def chromium() -> str | None:
    """The browser's path, if there is one."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """A headless browser with one page; `events` holds all that it said."""

    def __init__(self, profile: Path) -> None:
        binary = chromium()
        assert binary is not None
        read_here, write_there = os.pipe()
        read_there, write_here = os.pipe()
        launcher = [sys.executable, "-c", LAUNCH, str(read_there), str(write_there)]
        command = [*launcher, binary, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        with (profile.parent / "chromium.log").open("wb") as log:
            self.process = subprocess.Popen(
                command, pass_fds=(read_there, write_there), stdout=log, stderr=log, start_new_session=True
            )
        os.close(read_there)
        os.close(write_there)
        self.read, self.write = read_here, write_here
        self.rest, self.count = b"", 0
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session: str | None = None
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.read)
        os.close(self.write)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        if getattr(self, "session", None):
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next(60)
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def _next(self, seconds: float) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.read], [], [], max(0.0, deadline - time.monotonic()))
            part = os.read(self.read, 1 << 16) if ready else b""
            if not part:
                raise TimeoutError(f"the browser said nothing for {seconds} s, or has ended")
            self.rest += part
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def open(self, page: Path) -> None:
        """Load a file and wait until it stands."""
        self.events.clear()
        self.call("Page.navigate", url=page.resolve().as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next(60))

    def value(self, script: str) -> Any:
        """What an expression is worth in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """A real key, pressed and let go."""
        text, code = KEYS[key]
        known = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **known)
        self.call("Input.dispatchKeyEvent", type="keyUp", **known)

    def size(self, width: int, height: int, *, phone: bool = False) -> None:
        scale = 2 if phone else 1
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=phone,
        )

    def prefer(self, scheme: str) -> None:
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, path: Path) -> None:
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    @property
    def complaints(self) -> list[str]:
        """Console errors and warnings, uncaught exceptions, and the browser's own remarks."""
        found = []
        for event in self.events:
            params = event.get("params", {})
            if event["method"] == "Runtime.exceptionThrown":
                found.append(str(params["exceptionDetails"]))
            if event["method"] == "Runtime.consoleAPICalled" and params["type"] in (
                "error",
                "warning",
                "assert",
            ):
                found.append(str(params["args"]))
            if event["method"] == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(params["entry"]["text"])
        return found

    @property
    def requests(self) -> list[str]:
        """Every address the page asked for."""
        sent = [event for event in self.events if event["method"] == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]
