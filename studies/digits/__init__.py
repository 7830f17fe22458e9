"""Builds the embedded digits."""
