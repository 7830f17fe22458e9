"""Data that ship with the package: digits and emoji."""
