"""The model card of an export: what a run learned and kept, on which data, and how to load it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tracer.core.markdown import markdown_table
from tracer.core.metrics import Interval
from tracer.evaluation.verdict import Change, Verdict, names_kept, plus_minus, verdict
from tracer.models.student import Head
from tracer.report.commands import training
from tracer.report.run_data import RunData, read_run
from tracer.report.templates import environment, line

CHOSEN_FILE = (
    "chosen_by_fit.json"  # in a run: the weights that `tracer fit` chose, and its sentence on the test images
)
LIBRARIES = {"open_clip": "open_clip", "hf": "transformers", "onnx": "onnx"}
PATHS = ("data", "held_out", "retain", "model", "templates", "pretrained", "classes", "root")
UNKNOWN = "not known to tracer; it stays what its owners say"
DATA_LICENCES = {
    "digits": "CC BY-SA 3.0 (a subset of MNIST)",
    "emoji": "by style: Apache 2.0, CC BY 4.0, CC BY-SA 4.0 and MIT (NOTICE of tracer)",
}


def model_card(folder: Path, weights: str, format: str, name: str, head: Head | None = None) -> str:
    """The card, in Markdown with the hub's header, of named weights of the run in `folder`.

    `head` is their classification head, if any: the card shows how it is applied. Paths of this machine are shortened
    to the last part of their name.
    """
    run = _without_folders(read_run(folder))
    outcome = verdict(run.result or {}) if weights == "result" else None
    card = environment().get_template("model_card.md.j2")
    return card.render(
        run=run,
        weights=weights,
        format=format,
        head=head,
        name=name,
        library=LIBRARIES[format],
        base=_base(run),
        licence=_base_licence(run),
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


def _test(folder: Path, weights: str) -> str:
    """What `tracer fit` measured of these weights on images that chose nothing; empty if it did not choose them."""
    try:
        chosen = json.loads((folder / CHOSEN_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return ""
    same = isinstance(chosen, dict) and chosen.get("weights") == weights
    return str(chosen.get("sentence", "")) if same else ""


def _changes(outcome: Verdict) -> str:
    """Accuracies before and after with intervals and counts."""
    rows = [_row("task, held out", outcome.task)]
    rows += [_row(f"{line(name)}, to be kept", change) for name, change in outcome.retained.items()]
    return markdown_table(("accuracy on", "before", "after", "difference", "images"), rows)


def _merge(folder: Path, weights: str) -> str:
    """What `tracer merge` has measured of the weights that it wrote, as a table; empty for others."""
    try:
        merge = json.loads((folder / "merges" / f"{weights}.json").read_text(encoding="utf-8"))
        before, after = (_accuracies(merge[moment]) for moment in ("before", "after"))
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    rows = [(name, before.get(name, ("", ""))[0], *shown) for name, shown in after.items()]
    return markdown_table(("accuracy on", "before", "after", "images"), rows)


def _accuracies(scores: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Accuracy with its interval, and the number of images, on the held-out set and on each retained one."""
    result = {"task, held out": (plus_minus(Interval(*scores["interval"])), str(scores["n"]))}
    for name, interval in scores["retained_intervals"].items():
        result[f"{line(name)}, to be kept"] = (
            plus_minus(Interval(*interval)),
            str(scores["retained_n"][name]),
        )
    return result


def _row(name: str, change: Change) -> tuple[str, ...]:
    difference = f"{100 * change.difference.value:+.1f} ± {100 * change.difference.half_width:.1f} points"
    return name, plus_minus(change.before), plus_minus(change.after), difference, str(change.n)


def _provenance(run: RunData) -> list[str]:
    """Versions, commit and date."""
    versions = run.description.get("versions") or {}
    facts = [f"{name} {version}" for name, version in versions.items()]
    facts += [f"commit {run.description['git'][:12]}"] if run.description.get("git") else []
    facts += [f"begun {run.description['created'][:10]}"] if run.description.get("created") else []
    return facts


def _base(run: RunData) -> str:
    model, pretrained = run.experiment.get("model", "?"), run.experiment.get("pretrained", "auto")
    return f"{model} ({pretrained})" if pretrained not in ("auto", "none") else str(model)


def _base_licence(run: RunData) -> str:
    """The licence of the pretrained weights as their own card states it, or as is known of OpenAI's."""
    experiment = run.description["original"]
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
    return next(
        (licence for start, licence in DATA_LICENCES.items() if re.match(rf"{start}\b", name)), UNKNOWN
    )


def _without_folders(run: RunData) -> RunData:
    """The run with the last part of each path instead of the path; `original` keeps the settings as they were."""
    experiment = {
        name: _shortened(value) if name in PATHS else value for name, value in run.experiment.items()
    }
    data = {name: _shortened(value) if name == "name" else value for name, value in run.data.items()}
    description = {**run.description, "original": run.experiment, "experiment": experiment, "data": data}
    return replace(run, description=description)


def _shortened(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_shortened(each) for each in value]
    if not isinstance(value, str) or os.sep not in value or value.startswith(("hf-hub:", "hf:")):
        return value
    return Path(value).name
