"""Faults, put into tracer on purpose: `python -m faults` counts what it survives. See docs/reliability.md."""
