"""`python -m tracer` is the command `tracer`."""

import sys

from tracer.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
