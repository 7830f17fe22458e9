"""Dual encoders: loading, text, zero-shot heads, trainable parameters, export."""
