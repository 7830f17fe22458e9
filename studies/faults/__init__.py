"""Fault injection: `python -m studies.faults` counts what tracer survives. See docs/reliability.md."""
