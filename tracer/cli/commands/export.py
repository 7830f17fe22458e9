"""Write a run as a model that open_clip loads: `tracer export RUN`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from tracer.api.export import export
from tracer.cli.flags import cli
from tracer.runs.run import Run
from tracer.terminal import console


def main(arguments: list[str]) -> int:
    def write(
        run: Annotated[Path, tyro.conf.Positional], weights: str = "result", out: Path | None = None
    ) -> int:
        """Write safetensors and open_clip's config into a folder.

        Args:
            run: the run's folder.
            weights: result, student, teacher, pretrained, or the name of a merge.
            out: the folder to write; by default RUN/export/WEIGHTS.
        """
        folder = export(Run.open(run), out, weights=weights)
        console.print(f"written to {folder}. Load it with:", highlight=False)
        console.print(f'  open_clip.create_model("local-dir:{folder}")', highlight=False, markup=False)
        return 0

    return cli(write, arguments, "tracer export")
