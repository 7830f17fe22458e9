"""Compare both models of a run on a local page: `tracer try RUN…`."""

from __future__ import annotations

import socket
from importlib.util import find_spec
from pathlib import Path

from tracer.api.terminal import say
from tracer.cli.flags import command
from tracer.core.errors import UserError
from tracer.report.interactive.comparison import Comparison
from tracer.report.interactive.local import ADDRESS
from tracer.report.interactive.page import served
from tracer.runs.run import Run


@command("tracer try")
def main(
    runs: tuple[Path, ...],
    /,
    port: int = 0,
) -> int:
    """Open a page on which a run's pretrained and finetuned model stand side by side.

    Drop an image, edit the names and compare the scores; type a text and see which of the held-out images each model
    finds; look at what was learned and forgotten. The page is served to this machine alone, and nothing is sent
    anywhere.

    Examples:
      tracer try runs/1a2b3c                         then open the address that is shown
      tracer try runs/a runs/b --port 7861           a tab for each run

    Args:
        runs: folders of finished runs.
        port: port of the page; 0 takes a free one.
    """
    if not 0 <= port < 65536:
        raise UserError(f"--port {port}: give a number from 0 to 65535")
    if port and not _is_free(port):
        raise UserError(f"--port {port} is in use by another program: give another one, or 0 for a free one")
    opened = [Run.open(run) for run in runs]
    for run in opened:
        run.require_finished()
    if find_spec("gradio") is None:
        raise UserError("tracer try needs the package gradio: pip install 'tracer-clip[try]'")
    with served([Comparison(run) for run in opened], port) as (blocks, address):
        say(f"Open {address} in a browser on this machine; Ctrl-C ends it.")
        blocks.block_thread()
    return 0


def _is_free(port: int) -> bool:
    """Whether the page can be served there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, port))
        except OSError:
            return False
    return True
