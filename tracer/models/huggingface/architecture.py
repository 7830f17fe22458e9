"""The config of a dual encoder, in the words of transformers and of open_clip.

Only the keys named here are read, and nothing else of an untrusted config is passed on. What one library cannot
express in the words of the other is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from tracer.core.errors import UserError

Section = Mapping[str, Any]

# What transformers assumes where a config is silent.
BASE = {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12}
SMALL = {"hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 12, "num_attention_heads": 8}
OF_CLIP = {"hidden_act": "quick_gelu", "layer_norm_eps": 1e-5}
OF_SIGLIP = {"hidden_act": "gelu_pytorch_tanh", "layer_norm_eps": 1e-6}
CLIP: dict[str, Section] = {
    "text": {"vocab_size": 49408, "max_position_embeddings": 77, "eos_token_id": 49407} | SMALL | OF_CLIP,
    "vision": {"image_size": 224, "patch_size": 32} | BASE | OF_CLIP,
}
SIGLIP: dict[str, Section] = {
    "text": {"vocab_size": 32000, "max_position_embeddings": 64, "projection_size": None} | BASE | OF_SIGLIP,
    "vision": {"image_size": 224, "patch_size": 16, "num_patches": 256, "vision_use_head": True}
    | BASE
    | OF_SIGLIP,
}
FAMILIES = {"clip": CLIP, "siglip": SIGLIP, "siglip2": SIGLIP}

# timm's image towers of SigLIP: width, layers, heads, width of the MLP. Patch and image size are in their names.
TRUNKS = {
    "base": (768, 12, 12, 3072),
    "large": (1024, 24, 16, 4096),
    "so400m": (1152, 27, 16, 4304),
    "giantopt": (1536, 40, 16, 6144),
}
TRUNK = re.compile(r"vit_(?P<size>[a-z0-9]+)_patch(?P<patch>\d+)_siglip_(?P<image>\d+)")
TANH = {"approximate": "tanh"}


def model_type(config: Section, source: str) -> str:
    """The family of a transformers config; raises UserError for one that open_clip cannot hold."""
    kind = config.get("model_type")
    if kind not in FAMILIES:
        raise UserError(
            f"{source} is a model of type {kind!r:.60}: of transformers' models tracer reads {', '.join(FAMILIES)}"
        )
    if "auto_map" in config:
        raise UserError(
            f"{source} asks to run Python files that lie beside it (auto_map), which tracer never does"
        )
    return kind


def open_clip_config(config: Section, source: str, tokenizer: str) -> dict[str, Any]:
    """open_clip's model_cfg of a transformers config; `tokenizer` is where its tokenizer's files come from."""
    kind = model_type(config, source)
    vision, text = (_section(config, part, FAMILIES[kind][part], source) for part in ("vision", "text"))
    own_text = {
        "context_length": text["max_position_embeddings"],
        "vocab_size": text["vocab_size"],
        "hf_tokenizer_name": tokenizer,
        "width": text["hidden_size"],
        "heads": text["num_attention_heads"],
        "layers": text["num_hidden_layers"],
        "mlp_ratio": _ratio(text),
    }
    if kind != "clip":
        return _siglip(kind, vision, text, own_text, source)
    if vision["hidden_act"] != text["hidden_act"]:
        raise UserError(
            f"{source}: open_clip has one activation for both towers, and hidden_act differs between them"
        )
    if text["eos_token_id"] not in (2, text["vocab_size"] - 1):  # both mean: where the id is highest
        own_text |= {"pool_type": "eos", "eos_id": text["eos_token_id"]}
    own_vision = {
        "image_size": vision["image_size"],
        "patch_size": vision["patch_size"],
        "width": vision["hidden_size"],
        "layers": vision["num_hidden_layers"],
        "mlp_ratio": _ratio(vision),
        "head_width": vision["hidden_size"] // vision["num_attention_heads"],
    }
    return {
        "embed_dim": _number(config.get("projection_dim", 512), f"projection_dim of {source}"),
        **({"quick_gelu": True} if vision["hidden_act"] == "quick_gelu" else {}),
        "vision_cfg": own_vision | _details(vision),
        "text_cfg": own_text | _details(text),
    }


def _siglip(kind: str, vision: Section, text: Section, own_text: Section, source: str) -> dict[str, Any]:
    size = vision["image_size"]
    if kind == "siglip2":  # flexible resolution: used at the square for which its positions are stored
        size = math.isqrt(vision["num_patches"]) * vision["patch_size"]
    shape = tuple(
        vision[name]
        for name in ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    )
    sizes = [name for name, known in TRUNKS.items() if known == shape]
    trunk = f"vit_{sizes[0]}_patch{vision['patch_size']}_siglip_{size}" if sizes else ""
    import timm  # late: slow

    if not timm.is_model(trunk) or vision["layer_norm_eps"] != 1e-6 or not vision["vision_use_head"]:
        raise UserError(
            f"{source}: open_clip has no image tower of SigLIP with width, layers, heads and MLP {shape}, patches of "
            f"{vision['patch_size']} and images of {size} pixels"
        )
    return {
        "embed_dim": text["projection_size"] or text["hidden_size"],
        "init_logit_bias": -10,
        "custom_text": True,
        "vision_cfg": {
            "image_size": size,
            "timm_model_name": trunk,
            "timm_model_pretrained": False,
            "timm_pool": "map",
            "timm_proj": "none",
            # open_clip ignores this of a timm tower; tracer does not (`activation`).
            "act_kwargs": TANH if vision["hidden_act"] == "gelu_pytorch_tanh" else {"approximate": "none"},
        },
        "text_cfg": {
            **own_text,
            "no_causal_mask": True,
            "proj_bias": True,
            "pool_type": "last",
            **_details(text),
        },
    }


def _details(tower: Section) -> dict[str, Any]:
    """open_clip's settings of norms and activations, where they are not its defaults."""
    norm = {} if tower["layer_norm_eps"] == 1e-5 else {"norm_kwargs": {"eps": tower["layer_norm_eps"]}}
    return norm | ({"act_kwargs": TANH} if tower["hidden_act"] == "gelu_pytorch_tanh" else {})


def _section(config: Section, part: str, defaults: Section, source: str) -> dict[str, Any]:
    """The settings of one tower, each of the kind of its default."""
    stated = config.get(f"{part}_config_dict") or config.get(f"{part}_config") or {}  # the first in old files
    if not isinstance(stated, Mapping):
        raise UserError(f"{source}: {part}_config is not an object but {stated!r:.60}")
    section = {name: stated.get(name, default) for name, default in defaults.items()}
    for name, default in defaults.items():
        if isinstance(default, int | float) and not isinstance(default, bool):
            _number(section[name], f"{part}_config.{name} of {source}")
    acts = ("quick_gelu", "gelu", "gelu_pytorch_tanh")
    if section["hidden_act"] not in acts:
        act = section["hidden_act"]
        raise UserError(f"{source}: {part}_config.hidden_act is one of {', '.join(acts)}, not {act!r:.60}")
    if stated.get("num_channels", 3) != 3:
        raise UserError(f"{source}: images have 3 channels, not {stated['num_channels']!r:.60}")
    return section


def _number(value: Any, what: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 10_000_000:
        raise UserError(f"{what} is a number above 0, not {value!r:.60}")
    return value


def _ratio(tower: Section) -> float:
    """The ratio of MLP to width, such that open_clip's rounding gives back the MLP."""
    ratio = tower["intermediate_size"] / tower["hidden_size"]
    while int(tower["hidden_size"] * ratio) < tower["intermediate_size"]:
        ratio = math.nextafter(ratio, math.inf)
    return ratio
