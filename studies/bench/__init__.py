"""Benchmarks: time and memory of tracer relative to a plain reference, measured alternately in one process."""
