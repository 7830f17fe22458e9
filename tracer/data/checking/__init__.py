"""Checks of a data set: can it be used, what is in it, and which images are in it twice."""
