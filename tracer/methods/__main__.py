"""Print the page of methods: `python -m tracer.methods > docs/methods.md`."""

from __future__ import annotations

import sys

from tracer.methods.catalogue import page

if __name__ == "__main__":
    sys.stdout.write(page())
