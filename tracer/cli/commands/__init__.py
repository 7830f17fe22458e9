"""One file per command: `main(arguments)` returns the exit code; the docstring's first line is shown by --help."""
