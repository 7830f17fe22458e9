"""How far the teacher of plain LoRA, an average of each factor, is from the average of their products."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tracer.core.weights import Weights
from tracer.models.lora import A, B
from tracer.parallel import World

LAYERS = 3  # the first, the last and one between: an average of products is as large as the weight itself


class FactorGap:
    """Follows the average of B A in a few layers, beside a teacher that averages A and B."""

    def __init__(self, student: nn.Module, world: World) -> None:
        layers = [name.removesuffix(B) for name, _ in student.named_parameters() if name.endswith(B)]
        spread = sorted({round(i * (len(layers) - 1) / (LAYERS - 1)) for i in range(LAYERS)})
        self.world, self.layers = world, [layers[i] for i in spread]
        self.average: Weights = self._products(student)

    @torch.no_grad()
    def follow(self, student: nn.Module, weight: float) -> None:
        """Move by the teacher's weight ω of this step."""
        if weight > 0:
            for layer, product in self._products(student).items():
                self.average[layer].lerp_(product, weight)

    @torch.no_grad()
    def __call__(self, teacher: nn.Module) -> float:
        """The largest ‖B̄ Ā − mean of B A‖ / ‖mean of B A‖ of the layers that are followed."""
        products = self._products(teacher)
        gaps = [
            float((products[layer] - mean).norm() / mean.norm().clamp_min(1e-30))
            for layer, mean in self.average.items()
        ]
        return max(gaps)

    def _products(self, model: nn.Module) -> dict[str, Tensor]:
        names = [layer + factor for layer in self.layers for factor in (A, B)]
        full = self.world.full_tensors(
            {name: model.get_parameter(name).detach() for name in names}, everywhere=True
        )
        return {layer: full[layer + B] @ full[layer + A] for layer in self.layers}
