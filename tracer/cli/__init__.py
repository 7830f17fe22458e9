"""The command `tracer`."""

from tracer.cli.app import main

__all__ = ["main"]
