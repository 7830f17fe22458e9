"""Trying a finished run by hand: `tracer try RUN`."""
