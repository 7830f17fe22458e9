"""Write the difference between two models as a LoRA adapter in the format of peft."""

from __future__ import annotations

import re
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from tracer.core.errors import UserError
from tracer.core.weights import Weights
from tracer.models.attention import own_form
from tracer.models.lora import LoRA, weight_name
from tracer.models.open_clip_compat import open_clip
from tracer.models.student import Student
from tracer.storage.atomic import write_folder, write_json
from tracer.storage.safetensors_io import write_weights

ROUNDING = 4  # ulps of the largest weight: what W + B A loses when it is rounded


def export_peft(student: Student, start: Student, folder: Path, rank: int, runs: int = 1) -> None:
    """Write an adapter that turns `start` into `student`, for `PeftModel.from_pretrained(open_clip_model, folder)`.

    The factors are those of the difference of the weights, so that any weights can be written that differ by low-rank
    updates of linear layers or convolutions: those of a run with an adapter of `rank`, WiSE-FT's, which scales it, and
    soups of `runs`, whose ranks add up. Temperature and head, which peft does not know, are written beside. Raises
    UserError for weights that differ in other ways. Of packed attention in open_clip's own form peft adapts the matrix,
    a parameter, and not the layer: such an adapter is for models of that form.
    """
    updates, others = _differences(student, start)
    factors = {layer: _factors(layer, *pair, rank, rank * runs) for layer, pair in updates.items()}
    if not factors:
        raise UserError(
            f"these weights of {student.name} do not differ from the pretrained ones by an adapter"
        )
    width = max(a.shape[0] for a, _ in factors.values())
    own = [layer for layer in factors if own_form(start.clip.get_submodule(layer))]
    config = {
        "peft_type": "LORA",
        "base_model_name_or_path": _base(start),
        "r": width,
        "lora_alpha": width,
        "lora_dropout": 0.0,
        "bias": "none",
        "inference_mode": True,
        "target_modules": "|".join(re.escape(layer) for layer in factors if layer not in own) or None,
        "target_parameters": [f"{layer}.in_proj_weight" for layer in own] or None,
    }
    config = {key: value for key, value in config.items() if value is not None}

    def write(temporary: Path) -> None:
        tensors: Weights = {}
        for layer, (a, b) in factors.items():
            padding, name = width - a.shape[0], f"base_model.model.{layer}"
            a, b, module = pad(a, (0, 0, 0, padding)), pad(b, (0, padding)), start.clip.get_submodule(layer)
            if isinstance(module, nn.Conv2d):  # peft's factors are convolutions too
                a, b = a.unflatten(1, module.weight.shape[1:]), b[..., None, None]
            tensors |= {f"{name}.lora_A.weight": a, f"{name}.lora_B.weight": b}
            # peft also adapts the output projection of packed attention: here by zero.
            if isinstance(module, nn.MultiheadAttention):
                tensors[f"{name}.base_layer.out_proj.lora_A.weight"] = a.new_zeros(width, a.shape[1])
                tensors[f"{name}.base_layer.out_proj.lora_B.weight"] = a.new_zeros(a.shape[1], width)
        write_weights(temporary / "adapter_model.safetensors", tensors, checksum=False)
        write_json(temporary / "adapter_config.json", config)
        if others:
            write_weights(temporary / "other.safetensors", others)

    write_folder(folder, write, replace=False)


def _base(start: Student) -> str:
    """open_clip's name of the pretrained model; of weights trained with QuickGELU that of the config which has it."""
    name = f"{start.name}-quickgelu"
    return name if start.config.get("quick_gelu") and name in open_clip.list_models() else start.name


def _differences(student: Student, start: Student) -> tuple[dict[str, tuple[Tensor, Tensor]], Weights]:
    """Start and end of each layer that differs and can be adapted, and the temperature and head where they differ."""
    begins, others = start.state_dict(), dict[str, Tensor]()
    layers = {weight_name(name, begins): name.removeprefix("clip.") for name in LoRA(rank=1).targets(start)}
    updates: dict[str, tuple[Tensor, Tensor]] = {}
    for name, end in student.state_dict().items():
        begin = begins.get(name)  # None for a head, which pretrained models do not have
        if begin is not None and torch.equal(begin, end):
            continue
        if begin is not None and name in layers:
            updates[layers[name]] = (begin, end)
        elif name.startswith(("head.", "clip.logit_")):
            others[name.removeprefix("clip.")] = end
        else:
            raise UserError(
                f"these weights also change {name.removeprefix('clip.')}, which no LoRA adapter does: "
                "export the whole model"
            )
    return updates, others


def _factors(layer: str, begin: Tensor, end: Tensor, rank: int, most: int) -> tuple[Tensor, Tensor]:
    """A and B of the lowest rank, from `rank` by doubling, whose product is the difference up to rounding.

    Ranks up to `most` are tried, and up to half of the full rank, which a layer that was trained itself exceeds.
    """
    difference = (end.double() - begin.double()).flatten(1)  # of a convolution, with a row for each output
    limit = ROUNDING * torch.finfo(end.dtype).eps * float(end.abs().max())
    full = min(difference.shape)
    highest = max(min(most, full), full // 2)
    while True:
        rank = min(rank, highest)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            u, s, v = torch.svd_lowrank(difference, q=rank, niter=4)
        a, b = (s.sqrt()[:, None] * v.T), u * s.sqrt()
        if float((difference - b @ a).abs().max()) <= limit:
            return a.to(end.dtype).contiguous(), b.to(end.dtype).contiguous()
        if rank == highest:
            raise UserError(f"the update of {layer} is not of low rank: export the whole model")
        rank *= 2
