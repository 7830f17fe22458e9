"""One file a command: `main(arguments)` returns the exit code; the docstring's first line is its description."""
