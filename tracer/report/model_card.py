"""The model card of an export: what a run learned and kept, on which data, and how to load it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tracer.core.markdown import markdown_table
from tracer.core.metrics import Interval
from tracer.evaluation.verdict import Verdict, names_kept, plus_minus, verdict
from tracer.models.prompts import described
from tracer.models.task import Task
from tracer.report.commands import training
from tracer.report.run_data import RunData, read_object, read_run
from tracer.report.templates import environment, line
from tracer.runs.files import CHOSEN
from tracer.runs.run import Run

NO_TASK = Task()
TASK = "task, held out"
LIBRARIES = {"open_clip": "open_clip", "hf": "transformers", "onnx": "onnx"}
PATHS = ("data", "held_out", "retain", "model", "templates", "pretrained", "classes", "root")
UNKNOWN = "not known to tracer; it stays what its owners say"
DATA_LICENCES = {
    "digits": "CC BY-SA 3.0 (a subset of MNIST)",
    "emoji": "by style: Apache 2.0, CC BY 4.0, CC BY-SA 4.0 and MIT (NOTICE of tracer)",
}


def model_card(
    folder: Path,
    weights: str,
    format: str,
    name: str,
    use: str = "",
    task: Task = NO_TASK,
    *,
    head: bool = False,
) -> str:
    """The card, in Markdown with the hub's header, of named weights of the run in `folder`.

    `use` is its section on how the model is used; `task` is what they name, `head` whether with a trained classifier.
    Paths of this machine are shortened to the last part of their name.
    """
    original = read_run(folder)
    run = _without_folders(original)
    outcome = verdict(run.result or {}) if weights == "result" else None
    model, pretrained = run.experiment.get("model", "?"), run.experiment.get("pretrained", "auto")
    card = environment().get_template("model_card.md.j2")
    return card.render(
        run=run,
        weights=weights,
        format=format,
        use=use,
        head=head,
        measured=_measured(task, head),
        name=name,
        library=LIBRARIES[format],
        base=model if pretrained in ("auto", "none") else f"{model} ({pretrained})",
        licence=_base_licence(original.experiment),
        data_licence=_data_licence(run),
        outcome=outcome,
        changes=_changes(outcome) if outcome else "",
        same_names=names_kept(run.result or {}) if outcome else None,
        plus_minus=plus_minus,
        merge=_merge(folder, weights),
        test=_test(folder, weights),
        command=training(run),
        facts=_provenance(run),
    )


def _measured(task: Task, head: bool) -> str:
    """By what the images of the task were named, before and after."""
    if not task.classes or not task.templates:
        return ""
    names = f"class names in {described(task.templates)}"
    by = f"the trained classifier, and before finetuning by {names}" if head else names
    return f"The images of the task are named by {by}."


def _test(folder: Path, weights: str) -> str:
    """What `tracer fit` measured of these weights on images that chose nothing; empty if it did not choose them."""
    chosen = _told(folder / CHOSEN, folder, weights)
    return str(chosen.get("sentence", ""))


def _told(file: Path, folder: Path, weights: str) -> dict[str, Any]:
    """What a file in a run says of these very weights; empty if it speaks of others of the name."""
    told = read_object(file, []) or {}
    return told if told and told.get("by") == Run(folder).by(weights) else {}


def _changes(outcome: Verdict) -> str:
    """Accuracies before and after with intervals and counts."""
    rows = []
    for name, change in {TASK: outcome.task, **_to_be_kept(outcome.retained)}.items():
        before, after, difference, n, _ = change
        points = f"{100 * difference.value:+.1f} ± {100 * difference.half_width:.1f} points"
        rows.append((name, plus_minus(before), plus_minus(after), points, str(n)))
    return markdown_table(("accuracy on", "before", "after", "difference", "images"), rows)


def _merge(folder: Path, weights: str) -> str:
    """What `tracer merge` has measured of the weights that it wrote, as a table; empty for others."""
    merge = _told(folder / "merges" / f"{weights}.json", folder, weights)
    try:
        before, after = (
            {TASK: each["interval"], **_to_be_kept(each["retained_intervals"])}
            for each in (merge["before"], merge["after"])
        )
        counts = {TASK: merge["after"]["n"], **_to_be_kept(merge["after"]["retained_n"])}
        rows = []
        for name, interval in after.items():
            start = plus_minus(Interval(*before[name])) if name in before else ""
            rows.append((name, start, plus_minus(Interval(*interval)), str(counts[name])))
    except (KeyError, TypeError, AttributeError):
        return ""
    return markdown_table(("accuracy on", "before", "after", "images"), rows)


def _to_be_kept(by_name: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{line(name)}, to be kept": value for name, value in by_name.items()}


def _provenance(run: RunData) -> list[str]:
    """Versions, commit and date."""
    versions = run.description.get("versions") or {}
    facts = [f"{name} {version}" for name, version in versions.items()]
    facts += [f"commit {run.description['git'][:12]}"] if run.description.get("git") else []
    facts += [f"begun {run.description['created'][:10]}"] if run.description.get("created") else []
    return facts


def _base_licence(experiment: Mapping[str, Any]) -> str:
    """The licence of the pretrained weights as their own card states it, or as is known of OpenAI's."""
    model, pretrained = str(experiment.get("model")), experiment.get("pretrained", "auto")
    if pretrained == "none":
        return "none: the weights were random"
    stated = _stated_licence(model)
    if stated:
        return stated
    own = not model.startswith(("hf-hub:", "local-dir:")) and not Path(model).exists()
    return "mit" if own and pretrained in ("auto", "openai") else UNKNOWN


def _stated_licence(model: str) -> str | None:
    """The licence in the header of a model's README.md, in a folder or in the hub's cache."""
    from huggingface_hub import try_to_load_from_cache

    if model.startswith("hf-hub:"):
        file = try_to_load_from_cache(model.removeprefix("hf-hub:"), "README.md")
        place = Path(file) if isinstance(file, str) else None
    else:
        place = Path(model.removeprefix("local-dir:")) / "README.md"
    if place is None or not place.is_file():
        return None
    text = place.read_text(encoding="utf-8", errors="replace")
    header = text.split("---", 2)[1] if text.startswith("---") and text.count("---") > 1 else ""
    stated = re.search(r"^license:\s*([\w.-]{1,60})\s*$", header, flags=re.MULTILINE)
    return stated[1] if stated else None


def _data_licence(run: RunData) -> str:
    name = str(run.experiment.get("data", ""))
    known = (licence for start, licence in DATA_LICENCES.items() if re.match(rf"{start}\b", name))
    return next(known, UNKNOWN)


def _without_folders(run: RunData) -> RunData:
    """The run with the last part of each path instead of the path."""
    paths = {name: _shortened(value) for name, value in run.experiment.items() if name in PATHS}
    data = run.data | {name: _shortened(value) for name, value in run.data.items() if name == "name"}
    description = run.description | {"experiment": run.experiment | paths, "data": data}
    return replace(run, description=description)


def _shortened(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_shortened(each) for each in value]
    if not isinstance(value, str) or os.sep not in value or value.startswith(("hf-hub:", "hf:")):
        return value
    return Path(value).name
