"""The forgetting meter: how much of the difference of two checkpoints lies inside the task's subspace.

The theory splits an update ΔW by the span of the task's inputs of W, with projector P: W P may change, W (I − P)
should not. In a deep network each linear layer has its own inputs. `weight_rows` gives the share of each ΔW
inside their span, `feature_rows` the effect on the features of inputs that should be retained.

    rows = weight_rows(pretrained, finetuned, task_batches)

Covered are linear layers, products `x @ parameter` (CLIP's projections) and attention's in- and out-projections.
`python -m studies.theory.meter RUN` prints both for the image tower of a finished run: training images span the task,
the run's retained data are what should stay.
"""

from __future__ import annotations

import math
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from studies.theory.products import Product, record_inputs
from studies.theory.sketch import Sketch
from tracer.api.terminal import say, show_table
from tracer.core.errors import UserError
from tracer.data.examples import Examples
from tracer.data.transforms import Transform
from tracer.runs.plan import plan
from tracer.runs.run import Run as RunFolder

IMAGES = 1024  # that span the task subspace; more add few directions

Run = Callable[[nn.Module, Any], object]


class WeightRow(NamedTuple):
    """‖ΔW P‖ and ‖ΔW (I − P)‖ of a layer; `share` = inside² / ‖ΔW‖².

    A random update has a share of rank/width on average: compare with `chance`.
    """

    layer: str
    inside: float
    outside: float
    share: float
    rank: int
    width: int

    @property
    def chance(self) -> float:
        return self.rank / self.width


class FeatureRow(NamedTuple):
    """Root-mean-square change of a layer's output on retained inputs, split by its cause.

    W'x' − Wx = ΔW P x (inside) + ΔW (I − P) x (outside) + W'(x' − x) (inherited from the layers before);
    `share` = inside² / (inside² + outside²).
    """

    layer: str
    inside: float
    outside: float
    inherited: float
    share: float


def weight_rows(
    before: nn.Module,
    after: nn.Module,
    task: Iterable[Any],
    *,
    energy: float = 0.99,
    limit: int = 512,
    run: Run = nn.Module.__call__,
) -> list[WeightRow]:
    """One row per linear layer that the task's batches pass through, in that order.

    The task subspace of a layer is spanned by its inputs in `before`, up to `energy` of their second moment
    (1 for all they span), by at most `limit` directions. `run(model, batch)` is one forward pass.
    """
    updates = _updates(before, after)
    bases = task_bases(before, task, energy, limit, run)
    rows = []
    for product, basis in bases.items():
        update = product.matrix(updates)
        projected = update @ basis
        inside, outside = float(projected.norm()), float((update - projected @ basis.T).norm())
        width, rank = basis.shape
        rows.append(WeightRow(product.layer, inside, outside, _share(inside, outside), rank, width))
    return rows


def feature_rows(
    before: nn.Module,
    after: nn.Module,
    task: Iterable[Any],
    retained: Iterable[Any],
    *,
    energy: float = 0.99,
    limit: int = 512,
    run: Run = nn.Module.__call__,
) -> list[FeatureRow]:
    """One row per linear layer: the effect of the update on the retained batches.

    The inputs of all layers are in memory for one retained batch at a time: keep these batches small.
    """
    updates, weights = _updates(before, after), dict(after.named_parameters())
    bases = task_bases(before, task, energy, limit, run)
    inner = {product: product.matrix(updates) @ basis @ basis.T for product, basis in bases.items()}
    outer = {product: product.matrix(updates) - inner[product] for product in bases}
    squares = {product: torch.zeros(3, dtype=torch.float64) for product in bases}
    counts: Counter[Product] = Counter()
    for batch in retained:
        inputs, changed = _inputs(before, batch, run), _inputs(after, batch, run)
        for product in bases.keys() & inputs.keys():
            old, new = inputs[product], changed[product]
            inherited = (new - old) @ product.matrix(weights).T
            parts = (old @ inner[product].T, old @ outer[product].T, inherited)
            squares[product] += torch.stack([part.square().sum() for part in parts])
            counts[product] += len(old)
    if not counts:
        raise UserError("the forgetting meter saw no retained batch pass a layer of the task")
    rows = []
    for product in bases:
        if counts[product]:
            inside, outside, inherited = (squares[product] / counts[product]).sqrt().tolist()
            rows.append(FeatureRow(product.layer, inside, outside, inherited, _share(inside, outside)))
    return rows


def task_bases(
    model: nn.Module, batches: Iterable[Any], energy: float, limit: int, run: Run
) -> dict[Product, Float[Tensor, "d r"]]:
    """An orthonormal basis of the inputs of each linear layer on these batches."""
    sketches: dict[Product, Sketch] = {}

    def add(product: Product, rows: Float[Tensor, "m d"]) -> None:
        sketches.setdefault(product, Sketch(rows.shape[1], limit)).add(rows)

    with record_inputs(model, add):
        for batch in batches:
            run(model, batch)
    if not sketches:
        raise UserError("the forgetting meter saw no linear layer: no batch, or a model without any")
    return {product: sketch.basis(energy) for product, sketch in sketches.items()}


def _inputs(model: nn.Module, batch: Any, run: Run) -> dict[Product, Float[Tensor, "m d"]]:
    inputs: dict[Product, list[Tensor]] = defaultdict(list)
    with record_inputs(model, lambda product, rows: inputs[product].append(rows)):
        run(model, batch)
    return {product: torch.cat(rows).to("cpu", torch.float64) for product, rows in inputs.items()}


def _share(inside: float, outside: float) -> float:
    """NaN where nothing changed."""
    total = inside**2 + outside**2
    return inside**2 / total if total > 0 else float("nan")


def _updates(before: nn.Module, after: nn.Module) -> dict[str, Tensor]:
    """ΔW of every parameter; UserError where the checkpoints do not match."""
    old, new = dict(before.named_parameters()), dict(after.named_parameters())
    differing = sorted(old.keys() ^ new.keys())
    differing += [name for name in old.keys() & new.keys() if old[name].shape != new[name].shape]
    if differing:
        raise UserError(
            f"the two checkpoints do not match in {len(differing)} parameters, e.g. {differing[0]}"
        )
    return {name: new[name].detach().double().cpu() - old[name].detach().double().cpu() for name in old}


def share_of(rows: Iterable[WeightRow]) -> tuple[float, float]:
    """The share of a whole update inside the task subspaces, Σ‖ΔW P‖² / Σ‖ΔW‖², and that of a random update."""
    sizes = [(row, row.inside**2 + row.outside**2) for row in rows]
    total = sum(size for _, size in sizes) or math.nan
    inside = sum(row.inside**2 for row, _ in sizes)
    return inside / total, sum(row.chance * size for row, size in sizes) / total


def main(folder: str) -> None:
    """Print the meter of a finished run."""
    run = RunFolder.open(Path(folder))
    run.require_finished()
    settled = plan(run.experiment)
    run.require(settled)
    before, after = run.student("pretrained"), run.student("result")
    transform = Transform(before.preprocess_cfg)

    def batches(examples: Examples) -> list[Tensor]:
        rows = np.linspace(0, len(examples) - 1, min(IMAGES, len(examples))).astype(int)
        return [
            transform.batch(examples.images, part.tolist())
            for part in np.array_split(rows, -(-len(rows) // 64))
        ]

    def encode(clip: Any, images: Tensor) -> object:
        return clip.encode_image(before.pixels(images))

    task, retained = batches(settled.train), [batch for data in settled.retain for batch in batches(data)]
    weights = weight_rows(before.clip, after.clip, task, run=encode)
    features = feature_rows(before.clip, after.clip, task, retained, run=encode) if retained else []
    changes = {row.layer: row for row in features}
    rows = []
    for row in weights:
        change = changes.get(row.layer)
        numbers = (math.hypot(row.inside, row.outside), row.share, row.chance)
        numbers += (change.inside, change.outside, change.inherited) if change else ()
        rows.append((row.layer, *(f"{number:.3f}" for number in numbers), *["–"] * (6 - len(numbers))))
    title = "Forgetting meter: the update's share in the task, and the change of retained features"
    show_table(title, ("layer", "‖ΔW‖", "in task", "chance", "inside", "outside", "inherited"), rows)
    share, chance = share_of(weights)
    say(f"{share:.3f} of the whole update lies inside the task ({chance:.3f} by chance)")


if __name__ == "__main__":
    main(sys.argv[1])
