"""Check a data set before training on it: `tracer check DATA`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from tracer.api.inputs import model_run
from tracer.api.terminal import counting, say
from tracer.cli.flags import command
from tracer.core.errors import UserError
from tracer.data.checking.report import command as train_command
from tracer.data.checking.report import describe
from tracer.data.place import remember_named
from tracer.data.scan import scan
from tracer.data.sources import Reading, load
from tracer.data.split import divide
from tracer.evaluation.suites import EMBEDDED, SUITES
from tracer.evaluation.suites.imagenet import COMPLETE
from tracer.evaluation.suites.imagenet import check as check_imagenet
from tracer.models.registry import known_models, locate
from tracer.models.source import HUB
from tracer.models.token_count import TokenCount
from tracer.runs.experiment import Experiment
from tracer.runs.plan import prompts_for


@command("tracer check")
def main(
    data: str,
    /,
    reading: Reading,
    strict: bool = False,
    skip_unreadable: bool = False,
    root: Path | None = None,
    at: tuple[str, ...] = (),
    model: str = Experiment.model,
) -> int:
    """Print a summary of a data set, its problems, and the command that trains on it.

    Args:
        data: a folder of images, a table, shards, or the name of a built-in set.
        strict: stop if any image is unreadable.
        skip_unreadable: leave unreadable images out, however many they are.
        root: if DATA is a suite such as imagenet: the folder of its data sets. Lists which are complete, which are
            missing and where to get them; the exit code is 1 if any is missing.
        at: sets of imagenet in other places, each NAME=PLACE.
        model: whose tokenizer counts the tokens of captions and prompts; its weights are not needed.
    """
    if data in SUITES and (root is not None or at or not Path(data).exists()):
        return _suite(data, root, at)
    if root is not None or at:
        raise UserError(f"--root and --at are for suites ({', '.join(SUITES)}), and {data} is not one")
    remember_named((data,))
    tokens = _token_count(model)  # first, so that a misspelt model is told at once
    with counting("reading the images") as count:
        check = partial(scan, strict=strict, skip_unreadable=skip_unreadable, progress=count)
        division = divide(data, check=check, **reading.keywords)
        test = None
        if "test" in division.train.splits:
            level = {"white_level": division.train.white_level}
            test = check(load(data, split="test", **(reading.keywords | level)))
    chosen = None if model == Experiment.model else model
    flags = {"data": data, "model": chosen, **reading.flags}
    training = train_command(flags, ("skip-unreadable",) if skip_unreadable else ())
    for line in describe(division, test, training, tokens, prompts_for(division.train)):
        say(line)
    return 0


def _token_count(model: str) -> TokenCount | str:
    """What counts tokens for this model, or of a run's; a sentence if its tokenizer is out of reach."""
    run = model_run(model)
    name = model if run is None else run.experiment.model
    try:
        return TokenCount(locate(name).tokeniser(), model)
    except UserError as error:
        if not name.startswith(HUB) and name not in known_models():  # it is misspelt
            raise
        return str(error)


def _suite(name: str, root: Path | None, at: tuple[str, ...]) -> int:
    """Print which data sets of a suite are complete."""
    if name not in EMBEDDED and root is None and not at:
        raise UserError(f"{name} is a suite: give --root, the folder of its data sets")
    if name == "imagenet":
        lines = check_imagenet(root, at)
    else:
        opened = (SUITES[name]() if name in EMBEDDED else SUITES[name](root)).open()
        lines = [f"{COMPLETE} {each.shift.name}: {len(each.examples)} images" for each in opened]
    for line in lines:
        say(line)
    return 0 if all(line.startswith(COMPLETE) for line in lines) else 1
