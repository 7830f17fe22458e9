"""Classification against fixed class texts, with a margin that knows how the classes are related."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import cross_entropy

from tracer.core.batch import Scene
from tracer.core.objective import Term


def margin(strength: float = 0.3) -> Term:
    """CLIPood's margin metric softmax: classes far from the right one must be beaten by more.

    L = mean_i CE(z_i, y_i), z_ic = s ( ⟨f_i, t_c⟩ − λ ⟨t_{y_i}, t_c⟩ ): up to a shift by sλ that no softmax
    notices, a margin of λ (1 − ⟨t_y, t_c⟩), 0 for the right class. Reference: CLIPood (arXiv 2302.00864).
    """

    def formula(scene: Scene) -> Tensor:
        seen = scene.student
        if seen.classes is None or scene.label is None:
            raise ValueError("margin needs the head's class rows and the labels")
        related = (seen.classes @ seen.classes.T)[scene.label]
        return cross_entropy(seen.scale * (seen.image @ seen.classes.T - strength * related), scene.label)

    return Term("margin", formula, needs=frozenset({"scores"}))
