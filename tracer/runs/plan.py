"""The plan of a run: data loaded and split, defaults filled in, and all settings checked before any work."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

from tracer.core.errors import UserError
from tracer.core.regularizers import regularizer
from tracer.core.teachers import check_interval
from tracer.data.checking.duplicates import trained_too
from tracer.data.classes import Spec, read_names
from tracer.data.examples import Examples
from tracer.data.scan import Progress, scan
from tracer.data.sources import load
from tracer.data.split import MEASURE, Division, Scan, divide
from tracer.methods.base import Method, method
from tracer.models.adapters import Adapter, adapter
from tracer.models.prompt_tokens import Prompts
from tracer.models.prompts import templates
from tracer.models.trainable import HeadOnly, Kind, LastBlocks
from tracer.runs.experiment import Experiment, default_batchnorm

MAX_TOWER_LR = 5e-5  # above it, full finetuning of pretrained towers is rare


@dataclass(frozen=True)
class Plan:
    """All that a run needs."""

    experiment: Experiment  # with all defaults filled in
    method: Method
    train: Examples
    held_out: Examples
    retain: tuple[Examples, ...]
    templates: tuple[str, ...]
    steps: int
    warmup: int
    anchors: Examples | None = None  # image-caption pairs of a second data stream, for methods that use one
    adapter: Adapter | None = None
    test: Examples | None = None  # set apart by --test-share
    division: str = ""  # how many images are trained on and held out, and which
    warnings: tuple[str, ...] = ()  # what is probably not meant
    names: Spec | None = None  # what --classes stood for

    @property
    def batch(self) -> int:
        assert self.experiment.batch is not None
        return self.experiment.batch

    @property
    def stage_steps(self) -> list[int]:
        """Steps of each stage; they sum to `steps`."""
        shares = [stage.share for stage in self.method.stages]
        ends = [round(self.steps * sum(shares[: i + 1]) / (sum(shares) or 1)) for i in range(len(shares))]
        return [end - start for start, end in zip([0, *ends], ends, strict=False)]


def divide_data(experiment: Experiment, check: Scan, names: Spec | None = None) -> Division:
    """The data of an experiment; `check` is applied to each set that is read.

    `names` are those of the classes if they were read before, as by a run: its file of them may be another now.
    """
    return divide(
        experiment.data,
        experiment.held_out,
        experiment.held_out_share,
        test_share=experiment.test_share,
        check=check,
        **experiment.keywords | ({} if names is None else {"classes": names}),
    )


def plan(
    experiment: Experiment,
    *,
    check_images: bool = True,
    check_model: bool = True,
    progress: Progress | None = None,
    division: Division | None = None,
) -> Plan:
    """Load the data, fill in defaults and check the settings; `progress` is called while all images are read.

    `division` are the data, where experiments on the same data are planned one after another.
    """
    recipe = method(experiment.method, **experiment.options)
    if experiment.regularizer is not None:
        recipe = recipe.regularized(regularizer(experiment.regularizer))
    adapted = _adapter(experiment, recipe)
    if check_model:
        experiment.locate()
    reading = {"strict": experiment.strict, "skip_unreadable": experiment.skip_unreadable}
    check = partial(scan, progress=progress, **reading) if check_images else lambda examples: examples
    names = class_names(experiment)
    division = division or divide_data(experiment, check, names)
    train = division.train
    if not len(division.held_out):
        raise UserError(f"nothing is held out of {experiment.data} ({division.source}): {MEASURE}")
    if "scores" in recipe.needs and not train.labelled:
        raise UserError(
            f"method {experiment.method} trains a classifier and {experiment.data} has no labels: "
            "give --label-column, or use a method that learns from captions (tracer, flyp)"
        )
    settled = replace(
        experiment,
        held_out_share=division.share,
        white_level=train.white_level,
        adapter=None if adapted is None else str(adapted),
    )
    resolved, steps, warmup = _resolve(settled, len(train))
    retain = tuple(retained_data(spec, check) for spec in experiment.retain)
    warnings = [*division.warnings, *trained_retained(train, retain)]
    if adapted is not None and experiment.lr <= MAX_TOWER_LR:  # updates of an adapter start at zero
        lr = f"--lr {experiment.lr:g}"
        warnings.append(f"--adapter with {lr} learns little: adapters usually need 1e-4 to 1e-2")
    result = Plan(
        experiment=resolved,
        method=recipe,
        train=train,
        held_out=division.held_out,
        retain=retain,
        templates=prompts_for(train, experiment.templates),
        steps=steps if any(stage.share for stage in recipe.stages) else 0,
        warmup=warmup,
        anchors=_anchors(experiment, recipe, check),
        adapter=adapted,
        test=division.test,
        division=str(division),
        warnings=tuple(warnings),
        names=names,
    )
    # A teacher that would move less than once in its stage is refused.
    for stage, stage_steps in zip(recipe.stages, result.stage_steps, strict=True):
        if stage_steps and (policy := stage.policy(stage_steps)) is not None:
            check_interval(policy, stage_steps)
    return result


def class_names(experiment: Experiment) -> Spec | None:
    """What --classes stands for now, without its path; None if it is not given."""
    named = experiment.classes
    return named if named in (None, "imagenet") else read_names(named)


def prompts_for(examples: Examples, name: str | None = None) -> tuple[str, ...]:
    """The prompt templates of this name; by default those of the data set, else OpenAI's."""
    return templates(name) if name else examples.templates or templates("openai")


def retained_data(spec: str, check: Scan = scan) -> Examples:
    """Data whose accuracy should survive; refused before work starts if it cannot be measured."""
    examples = check(load(spec, split="test"))
    if not examples.labelled:
        raise UserError(f"--retain {spec} has no labels, so that no accuracy can be measured on it")
    return examples


def trained_retained(train: Examples, retain: Iterable[Examples]) -> tuple[str, ...]:
    """A warning for each set that should survive training and is a part of it."""
    shared = (
        trained_too(train, each, f"images of {each.name}, which should be retained,") for each in retain
    )
    return tuple(f"{each}: what is kept is measured on images of training" for each in shared if each)


def _anchors(experiment: Experiment, recipe: Method, check: Scan) -> Examples | None:
    """The data of the second stream, if the method uses one."""
    if "anchors" not in recipe.needs:
        return None
    specs = {stage.anchors for stage in recipe.stages if "anchors" in stage.objective.needs}
    if specs == {""}:
        raise UserError(
            f"method {experiment.method} learns from {experiment.data} and from anchor pairs, and has no "
            "anchors: give --anchors TABLE with images and captions, or --strength 0 to do without"
        )
    (spec,) = specs
    return check(load(spec, split="train"))


def _adapter(experiment: Experiment, recipe: Method) -> Adapter | None:
    """The adapter, if one is asked for; an error if the method trains no weights that it could adapt."""
    if experiment.adapter is None:
        return None
    if all(isinstance(stage.tune, HeadOnly) for stage in recipe.stages):
        raise UserError(
            f"--adapter {experiment.adapter} adapts towers, and method {experiment.method} trains none: leave it out"
        )
    adapted = adapter(experiment.adapter)
    if isinstance(adapted, Prompts) and recipe.needs & {"features", "tokens"}:
        raise UserError(
            f"--adapter prompts adds tokens, and method {experiment.method} compares those of all blocks: use lora"
        )
    if isinstance(adapted, Prompts) and any(
        isinstance(stage.tune, Kind | LastBlocks) for stage in recipe.stages
    ):
        raise UserError(
            f"--adapter prompts adds tokens to whole towers, and --tune {recipe.options.get('tune')} trains a part: "
            "give --tune both or image, or leave out one of the two"
        )
    return adapted


def _resolve(experiment: Experiment, count: int) -> tuple[Experiment, int, int]:
    """The experiment with batch, steps and warm-up filled in for `count` images, its steps, its warm-up steps."""
    batch = experiment.batch or min(128, max(2, 1 << max(1, (count // 8).bit_length() - 1)))
    if batch > count:
        raise UserError(
            f"batch {batch} is larger than the data: {count} training images; use --batch {count}"
        )
    if batch < 2:
        raise UserError(f"batch {batch} is too small: a contrastive loss compares at least 2 images")
    if experiment.chunk is not None and experiment.chunk < 1:
        raise UserError(f"--chunk {experiment.chunk}: a chunk holds at least one image")
    if experiment.epochs is not None and experiment.steps is not None:
        raise UserError(f"give --epochs {experiment.epochs} or --steps {experiment.steps}, not both")
    epochs = experiment.epochs or (20 if count < 5000 else 10)
    steps = experiment.steps or max(1, round(epochs * (count // batch)))
    warmup = warmup_steps(experiment.warmup, steps)
    batchnorm = experiment.batchnorm
    if batchnorm == "auto":
        batchnorm = default_batchnorm(experiment.pretrained)
    resolved = replace(experiment, batch=batch, steps=steps, epochs=None, warmup=warmup, batchnorm=batchnorm)
    return resolved, steps, warmup


def warmup_steps(setting: float | None, steps: int) -> int:
    """Warm-up in steps."""
    if setting is None:
        return round(max(0.02 * steps, min(0.1 * steps, 50)))
    warmup = round(setting * steps) if setting < 1 else round(setting)
    if warmup >= steps:
        raise UserError(f"warm-up of {warmup} steps is not shorter than training, {steps} steps")
    return warmup
