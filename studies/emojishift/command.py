"""Try the paper's claims on EmojiShift: `tracer evidence quick`."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from pathlib import Path

from studies.emojishift.checks import Arms
from studies.emojishift.claims import CLAIMS
from studies.emojishift.frontiers import ROWS, frontiers
from studies.emojishift.page import FIGURE, overview, page, searched, studies_page
from studies.emojishift.rows import read, write
from studies.emojishift.runner import Workspace, run_studies
from studies.emojishift.study import SCALES, studies
from studies.emojishift.verdict import grouped
from studies.figure import save
from tracer.api.terminal import console
from tracer.cli.flags import cli
from tracer.core.errors import UserError, at_least, unknown
from tracer.storage.atomic import write_text

PHOTOS = Path(__file__).parents[1] / "photoshift" / "results" / "photoshift.json"


def main(arguments: list[str]) -> int:
    def evidence(
        scale: str = "quick",
        /,
        out: Path = Path("runs/emojishift"),
        results: Path | None = None,
        verdicts: Path | None = None,
        jobs: int = 2,
        again: tuple[str, ...] = (),
        redraw: bool = False,
    ) -> int:
        """Pretrain a small CLIP on emoji, finetune it by every method, and say which claims hold.

        Finished runs are not run again, so the command can be stopped and started at any time.

        Args:
            scale: quick (a quarter of an hour), adapters or teachers (half an hour), part (about four hours of two
                cores) or full (about a day of two).
            out: folder of the runs; the commands in the results name the models by this path.
            results: result file; by default SCALE.json in the folder of the runs.
            verdicts: Markdown page of the verdicts; by default SCALE.md beside the result file. The tables that it
                rests on are written beside it, as SCALE-studies.md.
            jobs: number of processes, each on one core.
            again: arms to run again, or pretrained models whose runs to repeat; every other row of the existing
                result file is kept.
            redraw: run nothing; write page and figure from the existing result file.
        """
        if scale not in SCALES:
            raise unknown("scale", scale, SCALES)
        at_least(1, jobs=jobs)
        file = results or out / f"{scale}.json"
        verdicts_file = verdicts or file.with_suffix(".md")
        if redraw:
            _write_page(file, verdicts_file)
        else:
            _run(scale, Workspace(out, jobs), file, verdicts_file, again)
        _print(f"\nresults: {file}\nverdicts: {verdicts_file}")
        return 0

    return cli(evidence, arguments, "tracer evidence")


def _run(scale: str, workspace: Workspace, file: Path, verdicts_file: Path, again: Collection[str]) -> None:
    """Run the studies; after each one, write the result file and the page."""
    command, earlier = ["tracer", "evidence", scale], []
    if again:
        by_name = {study.name: study for study in studies(scale)}
        known = {arm.name for study in by_name.values() for arm in study.arms}
        known |= {start for study in by_name.values() for start in study.pretrainings()}
        for name in again:
            if name not in known:
                raise unknown("arm or pretrained model", name, known)
        command += ["--again", *again]
        earlier = [
            each
            for each in read(file)[1]
            if each.arm not in again
            and (each.role == "start" or by_name[each.study].start(each.seed) not in again)
        ]
    states = run_studies(studies(scale), workspace, _print, earlier)
    for rows in list(states)[-1:] if again else states:  # a part of the rows must not replace a whole file
        write(file, rows, shlex.join(command))
        _write_page(file, verdicts_file)
        name, arms = list(grouped(rows).items())[-1]
        _print(f"\n{name}\n{overview(arms, searched(rows, name))}")


def _write_page(file: Path, verdicts_file: Path) -> None:
    """Write the page of a result file, and beside it its tables and its figure."""
    head, rows = read(file)
    tables = verdicts_file.with_stem(f"{verdicts_file.stem}-studies")
    write_text(verdicts_file, page(head, rows, tables.name, both=_both(grouped(rows))))
    write_text(tables, studies_page(head, rows, verdicts_file.name))
    if not ROWS.keys() & grouped(rows).keys():
        return
    try:
        save(frontiers(grouped(rows)), verdicts_file.parent / FIGURE.parent, FIGURE.stem, ["svg"])
    except UserError as error:  # no matplotlib: the page is complete without the figure
        _print(str(error))


def _both(studies: Mapping[str, Arms]) -> str:
    """The verdicts beside those of PhotoShift, if that has results."""
    from studies.photoshift.claims import studies as photo_studies  # late: it needs this study's modules
    from studies.photoshift.page import side_by_side
    from studies.photoshift.rows import read as read_photos

    return side_by_side(studies, photo_studies(read_photos(PHOTOS)[1]), CLAIMS) if PHOTOS.exists() else ""


def _print(text: str) -> None:
    console.print(text, highlight=False, markup=False)
