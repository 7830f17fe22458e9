"""`--tune` is followed or refused: with each task loss and each adapter."""

from __future__ import annotations

import pytest

from tracer.core.errors import UserError
from tracer.methods.base import method, methods, options

BOTH = [name for name in methods() if {"loss", "tune"} <= {option.name for option in options(name)}]


def test_methods_with_a_choice_of_loss_and_of_weights() -> None:
    assert BOTH == ["ema", "l2sp", "ldifs", "stock"]


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("tune", ["norms", "biases", "image", "last-1", "image-last-1"])
def test_a_choice_of_weights_belongs_to_the_contrastive_loss(name: str, tune: str) -> None:
    with pytest.raises(UserError, match=f"--tune {tune} belongs to --loss contrastive"):
        method(name, loss="classify", tune=tune)
    method(name, loss="contrastive", tune=tune)
    method(name, loss="classify", tune="both")


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("loss", ["classify", "contrastive"])
def test_a_misspelt_choice_of_weights_is_refused(name: str, loss: str) -> None:
    with pytest.raises(UserError, match="unknown choice of --tune 'nrms': did you mean norms"):
        method(name, loss=loss, tune="nrms")
