"""The model card of an export: what a run learned and kept, on which data, and how to load it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tracer.core.errors import printable
from tracer.core.markdown import markdown_table
from tracer.core.metrics import Interval
from tracer.evaluation.verdict import Change, names_kept, plus_minus, verdict
from tracer.report.reproduce import training
from tracer.report.run_data import RunData, read_run

LIBRARIES = {"open_clip": "open_clip", "hf": "transformers", "onnx": "onnx"}
PATHS = ("data", "held_out", "retain", "model", "templates", "pretrained", "classes", "root")
UNKNOWN = "not known to tracer; it stays what its owners say"
DATA_LICENCES = {
    "digits": "CC BY-SA 3.0 (a subset of MNIST)",
    "emoji": "by style: Apache 2.0, CC BY 4.0, CC BY-SA 4.0 and MIT (NOTICE of tracer)",
}
MOST_CLASSES = 20


def model_card(folder: Path, weights: str, format: str, name: str) -> str:
    """The card, in Markdown with the hub's header, of named weights of the run in `folder`.

    Paths of this machine are shortened to the last part of their name.
    """
    run = _without_folders(read_run(folder))
    licence = _base_licence(run)
    header = [f"library_name: {LIBRARIES[format]}", "pipeline_tag: zero-shot-image-classification"]
    header += ["tags:", "- clip", "- tracer", *([f"license: {licence}"] if _is_identifier(licence) else [])]
    data = run.data
    parts = [
        "\n".join(["---", *header, "---"]),
        f"# {_line(name)}",
        f"{_code(_base(run))}, finetuned with {_line(run.title)} on {_code(data.get('name', '?'))}: "
        f"{run.steps} steps, with tracer.",
        f"## What it learned, and what it kept\n\n{_outcome(folder, run, weights)}",
        f"## Data\n\n{_data(run)}",
        f"## Use\n\n{_use(format, run)}",
        f"## How it was made\n\n{_fenced(training(run))}\n\n{_provenance(run)}",
        f"## Licence\n\n- Base model {_code(_base(run))}: {licence}.\n- Data: {_data_licence(run)}.",
    ]
    return "\n\n".join(parts) + "\n"


def _outcome(folder: Path, run: RunData, weights: str) -> str:
    """Sentence and table with intervals and counts; of weights that were not measured so, what is known of them."""
    if weights == "pretrained":
        return "These are the pretrained weights as they were."
    if weights != "result":
        return "\n\n".join(_merged(folder, weights))
    outcome = verdict(run.result or {})
    if outcome is None:
        return "Nothing was measured: the run is not finished, or of version 0.1."
    rows = [_row("task, held out", outcome.task)]
    rows += [_row(f"{_line(name)}, to be kept", change) for name, change in outcome.retained.items()]
    columns = ("accuracy on", "before", "after", "difference", "images")
    parts = [_line(outcome.sentence()), markdown_table(columns, rows)]
    parts.append("Intervals are 95 %: Wilson's for accuracies, paired for differences.")
    if (same := names_kept(run.result or {})) is not None:
        images = (run.result or {})["retention"].get("n")
        parts.append(
            f"Both models choose the same of ImageNet's names for {plus_minus(same)} of {images} held-out images, "
            "which says how much the model changed beyond its task."
        )
    parts += [f"**Note:** {_line(str(note))}" for note in (run.result or {}).get("warnings", [])]
    return "\n\n".join(parts)


def _merged(folder: Path, weights: str) -> Iterator[str]:
    """What `tracer merge` has measured of the weights that it wrote."""
    yield f"These are the weights {_code(weights)} of the run."
    try:
        merge = json.loads((folder / "merges" / f"{weights}.json").read_text(encoding="utf-8"))
        before, after = (_accuracies(merge[moment]) for moment in ("before", "after"))
    except (OSError, ValueError, KeyError, TypeError):
        yield "They were not measured by themselves."
        return
    rows = [(name, before.get(name, ("", ""))[0], *shown) for name, shown in after.items()]
    yield markdown_table(("accuracy on", "before", "after", "images"), rows)
    yield "Intervals are 95 % (Wilson's)."


def _accuracies(scores: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Accuracy with its interval, and the number of images, on the held-out set and on each retained one."""
    result = {"task, held out": (plus_minus(Interval(*scores["interval"])), str(scores["n"]))}
    for name, interval in scores["retained_intervals"].items():
        result[f"{_line(name)}, to be kept"] = (
            plus_minus(Interval(*interval)),
            str(scores["retained_n"][name]),
        )
    return result


def _row(name: str, change: Change) -> tuple[str, ...]:
    difference = f"{100 * change.difference.value:+.1f} ± {100 * change.difference.half_width:.1f} points"
    return name, plus_minus(change.before), plus_minus(change.after), difference, str(change.n)


def _data(run: RunData) -> str:
    data, classes = run.data, run.classes
    counts = f"{data.get('train', '?')} images to train on, {data.get('held_out', '?')} held out"
    lines = [f"- {_line(data.get('division') or counts)}."]
    if classes:
        more = f" and {len(classes) - MOST_CLASSES} more" if len(classes) > MOST_CLASSES else ""
        names = ", ".join(_line(name) for name in classes[:MOST_CLASSES])
        lines.append(f"- {len(classes)} classes: {names}{more}.")
    return "\n".join(lines)


def _use(format: str, run: RunData) -> str:
    """Lines that load the folder in which the card lies."""
    if format == "hf":
        code = ["from transformers import AutoModel, AutoProcessor", ""]
        code += ['model = AutoModel.from_pretrained("FOLDER_OR_NAME")']
        code += ['processor = AutoProcessor.from_pretrained("FOLDER_OR_NAME")']
    elif format == "onnx":
        code = ["import onnxruntime", ""]
        code += ['image = onnxruntime.InferenceSession("image.onnx")  # pixels -> image_features']
        code += ['text = onnxruntime.InferenceSession("text.onnx")  # tokens -> text_features']
        code += ["# onnx_config.json: how pixels are made, the context length, logit scale and bias"]
    else:
        code = ["import open_clip", ""]
        code += [
            'model, preprocess = open_clip.create_model_from_pretrained("local-dir:FOLDER")  # or hf-hub:NAME'
        ]
        code += ['tokenizer = open_clip.get_tokenizer("local-dir:FOLDER")']
    templates = run.experiment.get("templates")
    prompt = f"\n\nClass names were put into the templates {_code(templates)}." if templates else ""
    return "```python\n" + "\n".join(code) + "\n```" + prompt


def _provenance(run: RunData) -> str:
    versions = run.description.get("versions") or {}
    facts = [f"{name} {version}" for name, version in versions.items()]
    facts += [f"commit {run.description['git'][:12]}"] if run.description.get("git") else []
    facts += [f"begun {run.description['created'][:10]}"] if run.description.get("created") else []
    return f"Run {_code(run.description.get('id', run.name))}: {', '.join(facts)}."


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


def _is_identifier(licence: str) -> bool:
    return re.fullmatch(r"[\w.-]+", licence) is not None


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


def _line(text: str) -> str:
    """Text of a run on one line, with Markdown's and HTML's signs escaped."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", printable(" ".join(str(text).split())))


def _code(text: object) -> str:
    return f"`{printable(' '.join(str(text).split())).replace('`', '')}`"


def _fenced(text: str) -> str:
    """A block of code that no line of the text can end."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}\n{printable(text)}\n{fence}"
