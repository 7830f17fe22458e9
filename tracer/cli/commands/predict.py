"""Name new images with a model: `tracer predict MODEL IMAGES`."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from tracer.api.load import load
from tracer.api.predict import (
    Answer,
    answers,
    file_of,
    images_at,
    question,
    recorded,
    require_format,
    require_sortable,
    sort_into,
    unfinished,
    write_answers,
)
from tracer.api.terminal import counting, errors, percent, say, show_table
from tracer.cli.flags import command
from tracer.core.errors import UserError
from tracer.data.scan import with_level
from tracer.models.prompts import templates as named_templates

SHOWN = 10  # rows of the table on the screen


@command("tracer predict")
def main(
    model: str,
    images: tuple[str, ...],
    /,
    out: Path | None = None,
    top: int = 3,
    sure: float = 0.0,
    classes: tuple[str, ...] = (),
    templates: str | None = None,
    sort: Path | None = None,
    pretrained: str = "auto",
    weights: str | None = None,
    device: str = "auto",
) -> int:
    """Name images with a model, as `tracer eval` measured it: with its trained
    classifier and its calibrated temperature, if it has them.

    An image that cannot be read is a row with the reason. A table that was stopped
    goes on where it was when the same command is given again.

    Examples:
      tracer predict runs/fit-1a2b/best photos/ --out answers.csv
      tracer predict my-model photo.jpg
      tracer predict ViT-B-16 photos/ --classes cat dog 'a red car'
      find . -name '*.jpg' | tracer predict my-model - --out answers.parquet

    Args:
        model: a run's folder, `best` of a fit, an exported folder, or the name of a model.
        images: files, folders, or one data set that eval reads; - reads paths from the standard input, one a line.
        out: the table to write, .csv, .jsonl or .parquet; by default the first rows are shown.
        top: how many classes each row has.
        sure: leave the class of an image empty if it is less probable than this.
        classes: words to choose from, or a file with one a line, instead of the model's own classes.
        templates: prompts for the words: openai, simple, name, or a file.
        sort: a folder; each image is linked, or copied, into a folder of its class there.
        pretrained: weights, if MODEL is a name.
        weights: of a run: result, student, teacher, pretrained, or the name of a merge.
        device: auto, cpu, cuda or mps.
    """
    if top < 1:
        raise UserError(f"--top {top}: a row has at least one class")
    if not 0 <= sure <= 1:
        raise UserError(f"--sure {sure:g}: give a probability between 0 and 1")
    if out is not None:
        require_format(out)
    places = _lines_of_input() if images == ("-",) else images
    examples, words = images_at(places), _words(classes)
    if not len(examples):
        raise UserError(f"no images in {' and '.join(places)}")
    prompts = None if templates is None else named_templates(templates)
    opened = load(model, pretrained, weights=weights, device=device)
    opened.names(words)  # what cannot be asked is told before the first image is read
    if opened.student.white_level is None:
        examples = with_level(examples)
    for remark in examples.warnings:
        say(f"Warning: {remark}", to=errors)
    if examples.split:
        say(f"the split {examples.split} of {', '.join(examples.splits)}", to=errors)
    asked = question(opened, examples, words, prompts, top)
    if sort is not None:
        require_sortable(sort, examples, places, asked)
    shown: list[Answer] = []
    named: Counter[str] = Counter()  # "" is an answer that is not sure
    others = {"unreadable": 0, "sorted": 0}

    def noted(rows: Iterable[Answer]) -> Iterator[Answer]:
        for number, row in enumerate(rows):
            name = row.name(sure)
            if len(shown) < SHOWN:
                shown.append(row)
            if row.problem:
                others["unreadable"] += 1
            else:
                named[name] += 1
            if sort is not None and name:
                sort_into(sort, name, file_of(examples, number))
                others["sorted"] += 1
            yield row

    with counting("images") as count:

        def blocks(skip: int) -> Iterator[list[Answer]]:
            for block in answers(opened, examples, words, prompts, top, skip):
                skip += len(block)
                yield block
                count(skip, len(examples))

        if out is None:
            for _ in noted(chain.from_iterable(blocks(0))):
                pass
        else:
            with unfinished(out) as record:
                write_answers(noted(recorded(blocks, examples, asked, record)), out, top, sure)
    _show(shown, named, others["unreadable"], top, sure)
    if out is not None:
        say(f"The table is {out}.")
    if sort is not None:
        say(f"{others['sorted']} images lie in {sort}, in a folder for each class.")
    if named[""] and out is not None:
        say(f"Next: look at the {named['']} rows of {out} whose class is empty.")
    elif out is None:
        say("Next: the same with --out answers.csv writes the table.")
    return 0


def _show(rows: list[Answer], named: Counter[str], unreadable: int, top: int, sure: float) -> None:
    """Say how many images have which class, and show the first rows."""
    total = named.total() + unreadable
    if unreadable == total:
        raise UserError(f"none of {total} images can be read; the first: {rows[0].problem}")
    common = [f"{name} {count}" for name, count in named.most_common() if name]
    say(f"{total} images: {', '.join(common[:SHOWN])}{', …' if len(common) > SHOWN else ''}")
    if named[""]:
        say(f"{named['']} have no class: none is as probable as --sure {sure:g}.")
    if unreadable:
        say(f"{unreadable} cannot be read; their rows have the reason.")
    table = []
    for row in rows:
        others = ", ".join(f"{name} {percent(share)}" for name, share in row.top[1:top])
        cells = (percent(row.probability), others, percent(row.margin)) if row.top else ("", row.problem, "")
        table.append((row.file, row.name(sure), *cells))
    title = f"The first {len(rows)}" if total > len(rows) else "Answers"
    show_table(title, ("file", "class", "probability", "next", "margin"), table)


def _words(classes: tuple[str, ...]) -> list[str] | None:
    """The words to choose from: those given, or the lines of a file."""
    if len(classes) == 1 and Path(classes[0]).is_file():
        try:
            lines = Path(classes[0]).read_text(encoding="utf-8-sig").splitlines()
        except UnicodeDecodeError as error:
            raise UserError(f"the class names in {classes[0]} are not UTF-8 text: {error}") from error
        return [line.strip() for line in lines if line.strip()]
    return list(classes) or None


def _lines_of_input() -> list[str]:
    """The paths on the standard input, one a line; names of files may hold any bytes."""
    return [name for line in sys.stdin.buffer if (name := os.fsdecode(line.rstrip(b"\r\n")))]
