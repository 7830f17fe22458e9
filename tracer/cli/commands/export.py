"""Write a run as a model that open_clip loads: `tracer export RUN`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from tracer.cli.console import console
from tracer.core.errors import UserError
from tracer.models.export import export
from tracer.runs.run import Run


def main(arguments: list[str]) -> int:
    def write(
        run: Annotated[Path, tyro.conf.Positional], weights: str = "result", out: Path | None = None
    ) -> int:
        """Write safetensors and open_clip's config into a folder.

        Args:
            run: the run's directory.
            weights: result, student, teacher or pretrained.
            out: the folder to write; by default RUN/export/WEIGHTS.
        """
        source = Run.open(run)
        folder = out or run / "export" / weights
        if folder.exists() and any(folder.iterdir()):
            raise UserError(f"{folder} is not empty: choose another --out")
        export(source.student(weights), folder, source.description["classes"])
        console.print(f"written to {folder}. Load it with:", highlight=False)
        console.print(f'  open_clip.create_model("local-dir:{folder}")', highlight=False, markup=False)
        return 0

    return tyro.cli(write, args=arguments, prog="tracer export")
