"""`tracer.finetune`: finetune a model on one's own data."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import fields, replace
from inspect import signature
from pathlib import Path
from typing import Any

from tracer.api.inputs import data_name, data_names, data_settings, model_name
from tracer.api.merge import merge
from tracer.api.run import Machine, Observer, run
from tracer.api.terminal import Display, counting
from tracer.core.errors import UserError, unknown
from tracer.data.classes import Spec
from tracer.merging.choose import check_keep
from tracer.methods.base import Method, options
from tracer.runs.experiment import Experiment, Settings
from tracer.runs.run import Run
from tracer.training.loop import Report


def finetune(
    data: Any,
    *,
    model: Any = "ViT-B-16",
    method: str | Method = "tracer",
    keep: float | None = None,
    held_out: Any = None,
    retain: Any = (),
    classes: Spec | None = None,
    out: str | Path | None = None,
    callback: Callable[[Report], object] | None = None,
    device: str = "auto",
    workers: int | None = None,
    save_every: int | None = None,
    **settings: Any,
) -> Run:
    """Finetune `model` on `data` and return the finished run. Blocks, and shows a progress bar.

    Called again with the same arguments it goes on from the newest checkpoint, or returns the finished run.

    Args:
        data: a folder, table, shards or name (see `tracer check`), a torch or Hugging Face data set, a pair (images,
            labels), a list of (image or path, label or caption), or a list of paths whose folders are the classes.
            In a pair with an image, a string is a caption unless `classes` is given.
        model: a name of open_clip, hf-hub:NAME, a folder of open_clip or transformers, a finished run, a module
            of transformers, or (module, name of its config) of open_clip.
        method: a method by name, or one with its options: `tracer.methods.tracer(strength=2)`.
        keep: the share of retention to keep, for example 0.97. After training, weights are interpolated towards the
            pretrained model until that much is kept, and the run that is returned uses these. If no mixture keeps it,
            the error names the folder of the finished run.
        held_out: data to evaluate on; by default a part of `data`.
        retain: data whose accuracy should survive; one or a list of specs. Measured before and after.
        classes: names of the classes, where labels are numbers: a list, a mapping or a file.
        out: the run's folder; by default runs/ID.
        callback: called with each `Report`, instead of showing progress.
        device: auto, cpu, cuda or mps.
        workers: processes that decode images.
        save_every: steps between checkpoints.
        settings: any other setting of `tracer train` (epochs, lr, batch, …), and options of the method.
    """
    folder = None if out is None else Path(out)
    if keep is not None:
        check_keep(keep)  # now, not after hours of training
    experiment = _experiment(
        method,
        {
            "held_out": None if held_out is None else data_name(held_out, classes),
            "retain": data_names(retain),
            **data_settings(data, classes),
            **settings,
        },
    )
    machine = Machine(device=device, workers=workers, save_every=save_every)
    # The weights of a run or a module are written to a folder, once all else is checked.
    name = model_name(model, Path("runs") if folder is None else folder.parent)
    experiment = replace(experiment, model=name)
    display = Display(experiment.method)
    observer = Observer(report=display.show, scan=lambda world: counting("reading the images", world.first))
    with display if callback is None else nullcontext():
        finished = run(experiment, folder, machine, Observer(report=callback) if callback else observer)
    if keep is None:
        return finished
    try:
        return merge(finished, wise="0:1:0.1", keep=keep, device=device)
    except UserError as error:  # hours of training are not lost
        raise UserError(f"{error}. The run itself is finished, in {finished.folder}") from error


def _experiment(method: str | Method, settings: dict[str, Any]) -> Experiment:
    """The experiment that these arguments mean; an argument that is no setting and no option is refused."""
    name, method_options = (method, {}) if isinstance(method, str) else (method.name, dict(method.options))
    if not name:
        raise UserError(
            "this method has no name: put it into a file of its own, as docs/add-a-method.md shows"
        )
    shared = {field.name: settings.pop(field.name) for field in fields(Settings) if field.name in settings}
    defaults = {option.name: option.default for option in options(name)}
    for key in settings:
        if key not in defaults:
            own = {*signature(finetune).parameters, *(field.name for field in fields(Settings))} - {
                "settings"
            }
            raise unknown(f"argument of finetune with method {name}", key, {*defaults, *own})
    return Experiment(method=name, options=defaults | method_options | settings, **shared)
