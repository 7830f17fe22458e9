"""The plans of a sweep's runs, without their images and weights, and what they write."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from tracer.api.run import divisible
from tracer.core.errors import UserError
from tracer.data.split import Division, divide
from tracer.parallel import World
from tracer.runs.experiment import Experiment, default_batchnorm
from tracer.runs.plan import Plan, plan
from tracer.storage.room import require_room, size
from tracer.sweep.product import Sweep
from tracer.sweep.worker import complete
from tracer.training.footprint import footprint, model_bytes


class Plans:
    """Plans experiments one after another; data that several have are read once."""

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep
        self.divisions: dict[tuple[Any, ...], Division] = {}

    def alike(self, experiment: Experiment) -> Experiment:
        """The experiment that stands for those which differ in their seed; its model can be built by now."""
        alike = replace(experiment, seed=0)
        start = self.sweep.start
        if start is None or Path(experiment.model).exists():
            return alike
        # The sweep makes this model first: as of the weights that the start ends with.
        batchnorm = default_batchnorm("auto") if alike.batchnorm == "auto" else alike.batchnorm
        return replace(alike, model=start.model, pretrained=start.pretrained, batchnorm=batchnorm)

    def __call__(self, experiment: Experiment) -> Plan:
        """The plan of an experiment, without reading its images."""
        source = (experiment.data, experiment.held_out, experiment.held_out_share)
        key = (*source, experiment.test_share, *experiment.keywords.values())
        if key not in self.divisions:
            unchecked: dict[str, Any] = {"check": lambda examples: examples, **experiment.keywords}
            self.divisions[key] = divide(*source, test_share=experiment.test_share, **unchecked)
        return divisible(plan(experiment, check_images=False, division=self.divisions[key]), World("cpu"))


def require_sweep_room(sweep: Sweep, folder: Path) -> None:
    """Raise DiskFull if there is none for all that is still to be written; runs that are refused write nothing."""
    plans, known, needed, count = Plans(sweep), dict[str, int](), 0, 0
    runs = {
        place: each for place, each in sweep.by_folder(folder).items() if not complete(place, sweep.tests)
    }
    if sweep.start is not None and not (folder / "start" / "export").exists():
        runs = {folder / "start": sweep.start, **runs}
    for place, experiment in runs.items():
        alike = plans.alike(experiment)
        if alike.id not in known:
            with suppress(UserError, RuntimeError, OSError, ValueError):
                settled = plans(alike)
                model = settled.experiment.pretrained_model(random=True)
                exported = model_bytes(model) if place.name == "start" else 0
                known[alike.id] = footprint(settled, model).total + exported
        needed += max(0, known.get(alike.id, 0) - size(place))
        count += alike.id in known
    less = "make room, give --out on another disk, or fewer values"
    require_room(folder, needed, f"a sweep with {count} runs to be done", less)
