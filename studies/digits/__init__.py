"""Build of the embedded digits, `tracer/data/digits.npz`."""
