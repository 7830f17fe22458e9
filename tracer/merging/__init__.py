"""Weights in, weights out: every way of making one model of several after training."""
