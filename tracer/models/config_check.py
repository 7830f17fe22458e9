"""Checks of model configs from untrusted sources: open_clip gets known keys with plain values, and nothing else.

open_clip passes some entries of a config on to other libraries. `text_cfg.tokenizer_kwargs`, for one, reaches
`AutoTokenizer.from_pretrained`, where trust_remote_code=True would run Python files that lie beside the model.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from tracer.core.errors import UserError, unknown
from tracer.core.validation import fits
from tracer.models.open_clip_compat import open_clip

TOP = ("embed_dim", "vision_cfg", "text_cfg", "multimodal_cfg", "custom_text", "quick_gelu", "cast_dtype")
TOP += ("init_logit_scale", "init_logit_bias", "nonscalar_logit_scale", "output_dict")
TOKENIZER = ("clean", "strip_sep_token", "context_length", "reduction_mask_seed", "additional_special_tokens")
KWARGS = ("eps", "approximate", "elementwise_affine", "bias")  # of activations and norms
OBJECTS = {"tokenizer_kwargs": TOKENIZER, "act_kwargs": KWARGS, "norm_kwargs": KWARGS}  # within a part
LARGEST = 10_000_000  # no number in a real config comes near it
SIZES = {  # whole numbers above 0, and at most these; the largest of open_clip's are a tenth of them or less
    **dict.fromkeys(("width", "embed_dim", "head_width", "n_queries"), 100_000),
    **dict.fromkeys(("layers", "heads", "attn_pooler_heads"), 1000),
    **dict.fromkeys(("image_size", "patch_size"), 8192),
    "context_length": 10_000,
    "vocab_size": LARGEST,
}
STAGES = 4  # of a ResNet
BYTES = 4  # of a parameter
RESIZING = {  # what open_clip and Pillow take
    "mode": ("RGB",),
    "interpolation": ("bicubic", "bilinear", "random"),
    "resize_mode": ("shortest", "longest", "squash"),
}


def check_model_config(config: Mapping[str, Any], source: str) -> None:
    """Raise UserError, naming the first, for a key that open_clip does not know or a value that is not plain."""
    _check_keys(config, TOP, source)
    parts = {
        "vision_cfg": open_clip.model.CLIPVisionCfg,
        "text_cfg": open_clip.model.CLIPTextCfg,
        "multimodal_cfg": open_clip.coca_model.MultimodalCfg,
    }
    for part, known in parts.items():
        own = config.get(part, {})
        if not isinstance(own, Mapping):
            raise UserError(f"{source}: {part} is not an object but {own!r:.60}")
        _check_keys(own, [field.name for field in fields(known)], f"{part} of {source}")
        for name, allowed in OBJECTS.items():
            kwargs = own.get(name) or {}
            if not isinstance(kwargs, Mapping):
                raise UserError(f"{source}: {part}.{name} is not an object but {kwargs!r:.60}")
            _check_keys(kwargs, allowed, f"{part}.{name} of {source}")
    objects = {*parts, *(f"{part}.{name}" for part in parts for name in OBJECTS)}
    for path, value in _values(config, objects):
        if not isinstance(value, str | int | float | bool | type(None)):
            raise UserError(f"{source}: {path} cannot be {value!r:.60}")
        size = next((SIZES[name] for name in path.split(".") if name in SIZES), None)  # some are lists
        if size is not None and value is not None and not (isinstance(value, int) and 1 <= value <= size):
            raise UserError(
                f"{source}: {path} {value!r:.60} is out of range: it is a number from 1 to {size}"
            )
        if isinstance(value, int | float) and not abs(value) <= LARGEST:
            raise UserError(f"{source}: {path} {value} is out of range")
    blocks = config.get("vision_cfg", {}).get("layers")
    if isinstance(blocks, list | tuple) and len(blocks) != STAGES:
        raise UserError(f"{source}: vision_cfg.layers {blocks!r:.60} is a number, or {STAGES} of a ResNet")
    _check_names(config, source)
    _check_memory(config, source)


def _check_names(config: Mapping[str, Any], source: str) -> None:
    """Raise UserError for an image tower that timm would look up in a folder or on the hub."""
    name = config.get("vision_cfg", {}).get("timm_model_name")
    if name is not None and not (isinstance(name, str) and re.fullmatch(r"[\w.-]*", name)):
        raise UserError(f"{source}: {name!r:.60} is not the name of a model of timm")


def _check_memory(config: Mapping[str, Any], source: str) -> None:
    """Raise UserError for a model that this machine cannot hold, before the kernel ends the process."""
    needed = BYTES * _parameters(config)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > memory:
        raise UserError(
            f"{source}: a model of this size needs more than {needed / 2**30:.0f} GiB, and this machine has "
            f"{memory / 2**30:.0f}"
        )


def _parameters(config: Mapping[str, Any]) -> int:
    """A lower bound of the number of parameters; towers of timm and transformers, which are found by name, count 0."""
    total = 0
    for part in ("vision_cfg", "text_cfg", "multimodal_cfg"):
        own = config.get(part, {})
        if not own.get("timm_model_name") and not own.get("hf_model_name"):
            width, layers = own.get("width") or 0, own.get("layers") or 0
            if isinstance(layers, int):
                total += 4 * width**2 * layers + width * (own.get("vocab_size") or 0)
            else:  # the attention at the end of a ResNet
                total += 4 * (32 * width) ** 2
            total += width * (config.get("embed_dim") or 0)
    return total


def check_preprocess_config(config: Mapping[str, Any], source: str) -> None:
    """Raise UserError unless the pixels' size, mean, standard deviation and resizing are what open_clip expects."""
    _check_keys(config, [field.name for field in fields(open_clip.transform.PreprocessCfg)], source)
    for name in ("mean", "std"):
        values = config.get(name, (0.5, 0.5, 0.5))
        if not fits(values, tuple[float, float, float]) or not all(abs(value) <= 255 for value in values):
            raise UserError(f"{source}: {name} is three numbers, not {values!r:.60}")
        if name == "std" and not all(value > 0 for value in values):
            raise UserError(f"{source}: std is more than 0, not {values!r:.60}")
    for name, choices in RESIZING.items():
        if (value := config.get(name, choices[0])) not in choices:
            raise UserError(f"{source}: {name} {value!r:.60} is not known: it is {' or '.join(choices)}")
    fill = config.get("fill_color", 0)
    if not fits(fill, int) or not 0 <= fill <= 255:
        raise UserError(f"{source}: fill_color is a number from 0 to 255, not {fill!r:.60}")
    size = config.get("size", 224)
    sizes = size if isinstance(size, list | tuple) else [size]
    if not 1 <= len(sizes) <= 2 or not all(isinstance(side, int) and 1 <= side <= 4096 for side in sizes):
        raise UserError(f"{source}: size is one or two numbers from 1 to 4096, not {size!r:.60}")


def _check_keys(config: Mapping[str, Any], allowed: Any, source: str) -> None:
    for key in config:
        if key not in allowed:
            raise unknown(f"key in {source}", key, allowed)


def _values(config: Mapping[str, Any], objects: set[str], path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value in the config and in its `objects`, with its dotted path; lists are walked too."""
    for key, value in config.items():
        if isinstance(value, Mapping) and f"{path}{key}" in objects:
            yield from _values(value, objects, f"{path}{key}.")
        elif isinstance(value, list | tuple):
            yield from _values({str(i): each for i, each in enumerate(value)}, objects, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def read_config(file: Path) -> dict[str, Any]:
    """The JSON object in a file; empty if it holds something else."""
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        raise UserError(f"{file} is not a readable config: {error}") from None
    return config if isinstance(config, dict) else {}


def checked_config(content: dict[str, Any], source: str) -> dict[str, Any]:
    """The model's config in an exported config, whose every key and value may be passed on to open_clip."""
    config, preprocess = content.get("model_cfg"), content.get("preprocess_cfg", {})
    if not isinstance(config, dict) or not isinstance(preprocess, dict):
        raise UserError(f"{source} is not a model config: it has no model_cfg")
    check_model_config(config, source)
    check_preprocess_config(preprocess, f"preprocess_cfg of {source}")
    return config
