"""Finetune a model: `tracer train [METHOD] --data …`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from tracer.api.run import Machine
from tracer.cli.dry_run import dry_run
from tracer.cli.flags import WIDTH, call, flags_of, parse
from tracer.cli.training import carry_out
from tracer.core.errors import UserError, unknown
from tracer.data.sources import Reading
from tracer.methods.base import methods, options, summary
from tracer.parallel import launch, require_one_process
from tracer.runs.experiment import Experiment, Settings, Source

EXAMPLES = """\
Examples (a method is named before the flags):
  tracer train --data photos/                          one folder per class
  tracer train --data pairs.csv --epochs 5             images and captions
  tracer train lipsum --data photos/ --retain other/   what other data suffer
  tracer train --data photos/ --dry-run                whether it fits in memory"""

# Flags that --help explains; it lists the others by the question that they answer, those not named here as "training".
EXPLAINED = ("data", "model", "epochs", "lr", "out", "dry_run")
DATA = ("held_out", "held_out_share", "test_share", "retain", "templates", "augment", "decode", "strict")
DATA += ("skip_unreadable",)
MODEL = ("model", "pretrained", "precision")


@dataclass(frozen=True, kw_only=True)
class Output(Machine):
    """Where and how it runs; none of it changes the result."""

    out: Path | None = None
    """Folder of the run; by default runs/ID, where ID is a hash of experiment and data."""
    dry_run: bool = False
    """Show whether it fits in memory and on the disk, how long it takes and which settings differ, and stop."""
    dry_run_all: bool = False
    """The same with every setting and every part of the memory."""


def main(arguments: list[str]) -> int:
    experiment, output = requested(arguments)
    if output.dry_run or output.dry_run_all:
        require_one_process("`tracer train --dry-run`")
        return dry_run(experiment, output.device, output.out, everything=output.dry_run_all)
    # A process that torchrun starts again finds the run that it has begun, and goes on with it.
    return carry_out(experiment, output.out, output, fresh=not launch().restarts)


def requested(arguments: list[str]) -> tuple[Experiment, Output]:
    """The experiment and the output options of the arguments of `tracer train`."""
    has_method = bool(arguments) and not arguments[0].startswith("-")
    name = arguments[0] if has_method else "tracer"
    if name not in methods():
        if Path(name).exists():
            raise UserError(f"{name} is a file or folder, not a method: did you mean --data {name}?")
        raise unknown("method", name, methods())
    prog, parts = (
        f"tracer train {name}" if has_method else "tracer train",
        (Settings, methods()[name], Output),
    )
    listed = textwrap.fill(f"Methods (`tracer list methods` recommends): {', '.join(methods())}", WIDTH)
    about, after = textwrap.fill(f"{name}: {summary(name)}", WIDTH), f"{EXAMPLES}\n\n{listed}"
    sections: Mapping[str | None, Sequence[str]] = _sections(name)
    if "--help" in arguments or "-h" in arguments:
        flags = {flag.key: flag.name for part in parts for flag in flags_of(part)}
        after = "\n".join(
            [f"More flags, explained by `{prog} --help-all`:", *_lines(sections, flags), "", after]
        )
        sections = {None: EXPLAINED}
    _refuse_options_of_others(arguments, name)
    values = parse(parts, arguments[has_method:], prog, about, after, sections)
    own = {option.name: values[option.name] for option in options(name)}
    settings = {each.name: values[each.name] for each in fields(Settings)}
    return Experiment(method=name, options=own, **settings), call(Output, values)


def _refuse_options_of_others(arguments: list[str], name: str) -> None:
    """Raise UserError for a flag that this method does not have and others have, and name them."""
    own = {option.name for option in options(name)}
    for word in arguments:
        key = word.partition("=")[0].removeprefix("--").replace("-", "_")
        owners = [each for each in methods() if key in {option.name for option in options(each)}]
        if word.startswith("--") and owners and key not in own:
            listed = ", ".join(owners[:5]) + (" and others" if len(owners) > 5 else "")
            raise UserError(f"{word.partition('=')[0]} is not an option of {name}, but of {listed}")


def _sections(name: str) -> dict[str | None, Sequence[str]]:
    """The parameters by the question that they answer."""
    data = [each.name for part in (Source, Reading) for each in fields(part)] + list(DATA)
    return {
        "data": data,
        "model": MODEL,
        "method": [option.name for option in options(name)],
        "training": [each.name for each in fields(Settings) if each.name not in (*data, *MODEL)],
        "output": [each.name for each in fields(Output)],
    }


def _lines(sections: Mapping[str | None, Sequence[str]], flags: Mapping[str, str]) -> Iterator[str]:
    """The flags that a short help does not explain, by question."""
    for title, keys in sections.items():
        names = "  ".join(flags[key] for key in keys if key not in EXPLAINED)
        first, others = f"  {title:9} ", " " * 12
        yield from textwrap.wrap(
            names, WIDTH, initial_indent=first, subsequent_indent=others, break_on_hyphens=False
        )
