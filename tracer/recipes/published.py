"""The numbers of the paper's tables and ablations, from published.csv: accuracy in per cent, and ECE over batches.

Tables 1 and 2; the appendix's tables of ResNet-50 and ViT-L/14, which Table 3 sums up; and the four ablations. They are
as printed, also where the printed mean over the shifts is not that of the printed values (docs/decisions.md).
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

# As `tracer.evaluation.suites.imagenet.SETS`.
COLUMNS = ("val", "v2", "r", "a", "sketch", "objectnet", "average")
Row = tuple[str, str]  # what is printed at the left, and the metric


@cache
def published(table: str) -> Mapping[Row, Mapping[str, float]]:
    """The values of a table by row and metric, then by column."""
    text = (files("tracer.recipes") / "published.csv").read_text(encoding="utf-8")
    lines = [line for line in csv.DictReader(text.splitlines()) if line["table"] == table]
    return {
        (line["row"], line["metric"]): {column: float(line[column]) for column in COLUMNS if line[column]}
        for line in lines
    }
