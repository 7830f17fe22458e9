"""The forgetting meter: where two checkpoints of a model differ, inside the task or beside it.

The theory splits an update ΔW by the inputs that the task sends through W: W P may change, W (I − P) should
not. In a deep network each linear layer has such inputs of its own. For each of them `weight_rows` tells how
much of ΔW lies inside their span, and `feature_rows` what this does to inputs that one would like to retain.

    rows = weight_rows(pretrained, finetuned, task_batches)

Seen are linear layers, products `x @ parameter` (CLIP's projections) and attention's in- and out-projections.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tracer.analysis.products import Product, listening
from tracer.analysis.sketch import Sketch
from tracer.core.errors import UserError

Run = Callable[[nn.Module, Any], object]


class WeightRow(NamedTuple):
    """‖ΔW P‖ and ‖ΔW (I − P)‖ of a layer; `share` = inside² / ‖ΔW‖².

    An update that knows nothing of the task has a share of rank/width on average: compare with `chance`.
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
    """Root-mean-square change of a layer's product on retained inputs, by where it comes from.

    W'x' − Wx = ΔW P x (inside) + ΔW (I − P) x (outside) + W'(x' − x) (inherited from the layers before);
    `share` = inside² / (inside² + outside²).
    """

    layer: str
    inside: float
    outside: float
    inherited: float
    share: float


def forward(model: nn.Module, batch: Any) -> object:
    """The model on a batch that is its one argument."""
    return model(batch)


def weight_rows(
    before: nn.Module,
    after: nn.Module,
    task: Iterable[Any],
    *,
    energy: float = 0.99,
    limit: int = 512,
    run: Run = forward,
) -> list[WeightRow]:
    """One row per linear layer that the task's batches pass, in the order they pass it.

    The task subspace of a layer is spanned by its inputs in `before`, up to `energy` of their second moment
    (1 for all they span), by at most `limit` directions. `run(model, batch)` is one forward pass.
    """
    updates = _updates(before, after)
    bases = task_bases(before, task, energy=energy, limit=limit, run=run)
    return [_weight_row(product, product.matrix(updates), basis) for product, basis in bases.items()]


def feature_rows(
    before: nn.Module,
    after: nn.Module,
    task: Iterable[Any],
    retained: Iterable[Any],
    *,
    energy: float = 0.99,
    limit: int = 512,
    run: Run = forward,
) -> list[FeatureRow]:
    """One row per linear layer: what the update does to inputs that are not the task's.

    The inputs of all layers are held for one retained batch at a time: keep these batches small.
    """
    updates, weights = _updates(before, after), dict(after.named_parameters())
    bases = task_bases(before, task, energy=energy, limit=limit, run=run)
    tallies = {product: _Tally(product.matrix(updates), basis) for product, basis in bases.items()}
    for batch in retained:
        old, new = _inputs(before, batch, run), _inputs(after, batch, run)
        for product, tally in tallies.items():
            if product in old:
                tally.add(old[product], new[product], product.matrix(weights))
    if not any(tally.count for tally in tallies.values()):
        raise UserError("the forgetting meter saw no retained batch pass a layer of the task")
    return [_feature_row(product, tally) for product, tally in tallies.items() if tally.count]


def task_bases(
    model: nn.Module,
    batches: Iterable[Any],
    *,
    energy: float = 0.99,
    limit: int = 512,
    run: Run = forward,
) -> dict[Product, Float[Tensor, "d r"]]:
    """An orthonormal basis of what the batches send through each linear layer."""
    sketches: dict[Product, Sketch] = {}

    def note(product: Product, rows: Float[Tensor, "m d"]) -> None:
        sketches.setdefault(product, Sketch(rows.shape[1], limit)).add(rows)

    with listening(model, note):
        for batch in batches:
            run(model, batch)
    if not sketches:
        raise UserError("the forgetting meter saw no linear layer: no batch, or a model without any")
    return {product: sketch.basis(energy) for product, sketch in sketches.items()}


def _inputs(model: nn.Module, batch: Any, run: Run) -> dict[Product, Float[Tensor, "m d"]]:
    heard: dict[Product, list[Tensor]] = defaultdict(list)
    with listening(model, lambda product, rows: heard[product].append(rows)):
        run(model, batch)
    return {product: torch.cat(rows).to("cpu", torch.float64) for product, rows in heard.items()}


class _Tally:
    """Sums of squares of the three parts of a layer's change."""

    def __init__(self, update: Float[Tensor, "out in"], basis: Float[Tensor, "in r"]) -> None:
        self.inside = update @ basis @ basis.T
        self.outside = update - self.inside
        self.squares = torch.zeros(3, dtype=torch.float64)
        self.count = 0

    def add(
        self,
        old: Float[Tensor, "m in"],
        new: Float[Tensor, "m in"],
        weights: Float[Tensor, "out in"],
    ) -> None:
        parts = (old @ self.inside.T, old @ self.outside.T, (new - old) @ weights.T)
        self.squares += torch.stack([part.square().sum() for part in parts])
        self.count += len(old)


def _weight_row(product: Product, update: Float[Tensor, "out in"], basis: Float[Tensor, "in r"]) -> WeightRow:
    projected = update @ basis
    inside = float(projected.norm())
    outside = float((update - projected @ basis.T).norm())
    return WeightRow(product.layer, inside, outside, _share(inside, outside), basis.shape[1], basis.shape[0])


def _feature_row(product: Product, tally: _Tally) -> FeatureRow:
    inside, outside, inherited = (tally.squares / tally.count).sqrt().tolist()
    return FeatureRow(product.layer, inside, outside, inherited, _share(inside, outside))


def _share(inside: float, outside: float) -> float:
    """Not a number where nothing changed: there is no share of nothing."""
    whole = inside**2 + outside**2
    return inside**2 / whole if whole > 0 else float("nan")


def _updates(before: nn.Module, after: nn.Module) -> dict[str, Tensor]:
    """ΔW of every parameter; checkpoints that do not match are refused."""
    old, new = dict(before.named_parameters()), dict(after.named_parameters())
    misfits = sorted(old.keys() ^ new.keys())
    misfits += [name for name in old.keys() & new.keys() if old[name].shape != new[name].shape]
    if misfits:
        raise UserError(f"the two checkpoints do not match: {len(misfits)} misfits, e.g. {misfits[0]}")
    return {name: new[name].detach().double().cpu() - old[name].detach().double().cpu() for name in old}
