"""Try the paper's claims on EmojiShift: `tracer evidence quick|part|full`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from studies.emojishift.conduct import Place, conduct
from studies.emojishift.frontiers import frontiers
from studies.emojishift.page import FIGURE, overview, page, searched
from studies.emojishift.rows import read, write
from studies.emojishift.study import SCALES, studies
from studies.emojishift.verdict import grouped
from studies.figure import save
from tracer.cli.console import console
from tracer.core.errors import UserError, at_least, unknown
from tracer.storage.atomic import write_text


def main(arguments: list[str]) -> int:
    def evidence(
        scale: Annotated[str, tyro.conf.Positional] = "quick",
        out: Path = Path("runs/emojishift"),
        results: Path | None = None,
        verdicts: Path | None = None,
        jobs: int = 2,
        redraw: bool = False,
    ) -> int:
        """Pretrain a small CLIP on emoji, finetune it by every method, and say which claims hold.

        What is finished is not run again: stop it and start it as you like. The model is made if it is absent.

        Args:
            scale: quick (a quarter of an hour), part (about four hours of two cores) or full (about a day of two).
            out: where the runs go; commands in the results name the models there as seen from the working directory.
            results: where the results go; by default SCALE.json in the folder of the runs.
            verdicts: the page of verdicts; by default SCALE.md beside the results.
            jobs: processes at a time, each on one core.
            redraw: run nothing: write page and figure from the results that are there.
        """
        if scale not in SCALES:
            raise unknown("scale", scale, SCALES)
        at_least(1, jobs=jobs)
        file = results or out / f"{scale}.json"
        written = verdicts or file.with_suffix(".md")
        if redraw:
            _publish(file, written)
        else:
            _carry_out(scale, Place(out, jobs), file, written)
        _say(f"\nresults: {file}\nverdicts: {written}")
        return 0

    return tyro.cli(evidence, args=arguments, prog="tracer evidence")


def _carry_out(scale: str, place: Place, file: Path, written: Path) -> None:
    """Run, keep the rows of each study once it is done, and write the page from what was kept."""
    for rows in conduct(studies(scale), place, _say):
        write(file, rows, f"tracer evidence {scale}")
        _publish(file, written)
        name, arms = list(grouped(rows).items())[-1]
        _say(f"\n{name}\n{overview(arms, searched(rows, name))}")


def _publish(file: Path, written: Path) -> None:
    """The page of what a result file holds, and its figure beside it."""
    head, rows = read(file)
    write_text(written, page(head, rows))
    try:
        save(frontiers(grouped(rows)), written.parent / FIGURE.parent, FIGURE.stem, ["svg"])
    except UserError as error:  # no matplotlib: the tables say the same
        _say(str(error))


def _say(text: str) -> None:
    console.print(text, highlight=False, markup=False)
