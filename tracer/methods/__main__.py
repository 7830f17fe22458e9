"""Update the page of methods: `python -m tracer.methods docs/methods.md`."""

from __future__ import annotations

import sys
from pathlib import Path

from tracer.methods.catalogue import page

if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(page(file.read_text(encoding="utf-8")), encoding="utf-8")
