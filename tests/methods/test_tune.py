"""`--tune` is followed or refused: with each task loss and each adapter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tracer.core.errors import UserError
from tracer.methods.base import method, methods, options
from tracer.models.lora import LoRA
from tracer.runs.experiment import Experiment
from tracer.runs.plan import plan
from tracer.training.setup import check_trainable

Make = Callable[..., Experiment]
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


@pytest.mark.parametrize("tune", ["norms", "biases"])
def test_lora_is_refused_where_no_matrix_is_trained(tune: str, experiment: Make) -> None:
    settled = plan(replace(experiment("flyp", tune=tune), adapter="lora"))
    with pytest.raises(UserError, match="no matrix of it is trained: leave out --tune"):
        check_trainable(settled, settled.experiment.pretrained_model())


@pytest.mark.parametrize("tune", ["norms", "biases", "last-1", "image-last-1"])
def test_prompts_are_refused_where_a_part_of_a_tower_is_trained(tune: str, experiment: Make) -> None:
    with pytest.raises(UserError, match=f"--adapter prompts adds tokens to whole towers, and --tune {tune} "):
        plan(replace(experiment("flyp", tune=tune), adapter="prompts"))


@pytest.mark.parametrize("tune", ["both", "image"])
@pytest.mark.parametrize("adapter", ["lora", "prompts"])
def test_adapters_follow_a_choice_of_towers(tune: str, adapter: str, experiment: Make) -> None:
    settled = plan(replace(experiment("flyp", tune=tune), adapter=adapter))
    check_trainable(settled, settled.experiment.pretrained_model())


@pytest.mark.parametrize("rank", ["1000", "1e12"])
def test_a_rank_above_that_of_every_layer_is_refused(rank: str, experiment: Make) -> None:
    settled = plan(replace(experiment("flyp"), adapter=f"lora:rank={rank}"))
    model = settled.experiment.pretrained_model()
    with pytest.raises(UserError, match=f"rank {float(rank):.0f} is above .* give (\\d+) or less") as refused:
        check_trainable(settled, model)
    largest = str(refused.value).split()[-3]
    check_trainable(replace(settled, adapter=LoRA(int(largest))), model)
