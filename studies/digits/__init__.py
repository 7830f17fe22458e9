"""Build of the embedded digits, `tracer/data/embedded/digits.npz`."""
