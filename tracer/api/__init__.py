"""The verbs of the Python API; the command line calls the same functions."""
