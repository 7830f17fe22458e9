"""The config of a dual encoder, in the words of transformers and of open_clip.

Only the keys named here are read, and nothing else of an untrusted config is passed on. What one library cannot
express in the words of the other is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from torch import nn

from tracer.core.errors import UserError
from tracer.core.validation import fits
from tracer.models.open_clip_compat import open_clip

Section = Mapping[str, Any]

# timm's image towers of SigLIP. Patch and image size are in their names.
SHAPE = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
TRUNKS = {
    "base": (768, 12, 12, 3072),
    "large": (1024, 24, 16, 4096),
    "so400m": (1152, 27, 16, 4304),
    "giantopt": (1536, 40, 16, 6144),
}
TRUNK = re.compile(r"vit_(?P<size>[a-z0-9]+)_patch(?P<patch>\d+)_siglip_(?P<image>\d+)")
TANH = {"approximate": "tanh"}
SIGLIP_TEXT = {"no_causal_mask": True, "proj_bias": True, "pool_type": "last"}
GELUS = ("GELU", "GELUTanh")  # torch's and timm's

# What transformers assumes where a config is silent.
BASE = dict(zip(SHAPE, TRUNKS["base"], strict=True))
SMALL = dict(zip(SHAPE, (512, 12, 8, 2048), strict=True))
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

# Settings of open_clip's towers that have a counterpart in transformers.
SIZES = ("width", "layers", "mlp_ratio", "act_kwargs", "norm_kwargs")
IMAGE_SETTINGS = (*SIZES, "image_size", "patch_size", "head_width")
TEXT_SETTINGS = (*SIZES, "context_length", "vocab_size", "heads", "pool_type", "pad_id")
TEXT_SETTINGS += ("hf_tokenizer_name", "tokenizer_kwargs")
# Settings without effect in eval mode.
UNUSED = ("patch_dropout", "output_tokens", "timm_model_pretrained", "timm_drop", "timm_drop_path")


def open_clip_config(config: Section, source: str, tokenizer: str) -> dict[str, Any]:
    """open_clip's model_cfg of a transformers config; `tokenizer` is where its tokenizer's files come from.

    Raises UserError for a model that open_clip cannot hold.
    """
    kind = config.get("model_type")
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise UserError(
            f"{source} is a model of type {kind!r:.60}: of transformers' models tracer reads {', '.join(FAMILIES)}"
        )
    if "auto_map" in config:
        raise UserError(
            f"{source} asks to run Python files that lie beside it (auto_map), which tracer never does"
        )
    vision, text = (_section(config, part, FAMILIES[kind][part], source) for part in ("vision", "text"))
    own_text = {
        "context_length": text["max_position_embeddings"],
        "vocab_size": text["vocab_size"],
        "hf_tokenizer_name": tokenizer,
        "heads": text["num_attention_heads"],
        **_own_tower(text),
    }
    if kind != "clip":
        return _siglip(kind, vision, text, own_text, source)
    if vision["hidden_act"] != text["hidden_act"]:
        raise UserError(
            f"{source}: open_clip has one activation for both towers, and hidden_act differs between them"
        )
    if text["eos_token_id"] not in (2, text["vocab_size"] - 1):  # both mean: where the id is highest
        own_text |= {"pool_type": "eos", "eos_id": text["eos_token_id"]}
    embed_dim = config.get("projection_dim", 512)
    _check_number(embed_dim, int, f"projection_dim of {source}")
    own_vision = {
        "image_size": vision["image_size"],
        "patch_size": vision["patch_size"],
        "head_width": vision["hidden_size"] // vision["num_attention_heads"],
        **_own_tower(vision),
    }
    quick = {"quick_gelu": True} if vision["hidden_act"] == "quick_gelu" else {}
    return {"embed_dim": embed_dim, **quick, "vision_cfg": own_vision, "text_cfg": own_text}


def _siglip(kind: str, vision: Section, text: Section, own_text: Section, source: str) -> dict[str, Any]:
    size = vision["image_size"]
    if kind == "siglip2":  # flexible resolution: used at the square for which its positions are stored
        size = math.isqrt(vision["num_patches"]) * vision["patch_size"]
    shape = tuple(vision[name] for name in SHAPE)
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
            # open_clip ignores this of a timm tower; tracer does not (`set_trunk_activation`).
            "act_kwargs": TANH if vision["hidden_act"] == "gelu_pytorch_tanh" else {"approximate": "none"},
        },
        "text_cfg": {**own_text, **SIGLIP_TEXT},
    }


def _own_tower(tower: Section) -> dict[str, Any]:
    """open_clip's settings of a tower that both kinds have; of norms and activations where they are not its defaults.

    The ratio of MLP to width is such that open_clip's rounding gives back the MLP.
    """
    width, mlp = tower["hidden_size"], tower["intermediate_size"]
    ratio = mlp / width
    while int(width * ratio) < mlp:
        ratio = math.nextafter(ratio, math.inf)
    own = {"width": width, "layers": tower["num_hidden_layers"], "mlp_ratio": ratio}
    if tower["layer_norm_eps"] != 1e-5:
        own["norm_kwargs"] = {"eps": tower["layer_norm_eps"]}
    return own | ({"act_kwargs": TANH} if tower["hidden_act"] == "gelu_pytorch_tanh" else {})


def _section(config: Section, part: str, defaults: Section, source: str) -> dict[str, Any]:
    """The settings of one tower, each of the kind of its default."""
    stated = config.get(f"{part}_config_dict") or config.get(f"{part}_config") or {}  # the first in old files
    if not isinstance(stated, Mapping):
        raise UserError(f"{source}: {part}_config is not an object but {stated!r:.60}")
    section = {name: stated.get(name, default) for name, default in defaults.items()}
    for name, default in defaults.items():
        if isinstance(default, int | float) and not isinstance(default, bool):
            _check_number(section[name], type(default), f"{part}_config.{name} of {source}")
    acts = ("quick_gelu", "gelu", "gelu_pytorch_tanh")
    if section["hidden_act"] not in acts:
        act = section["hidden_act"]
        raise UserError(f"{source}: {part}_config.hidden_act is one of {', '.join(acts)}, not {act!r:.60}")
    if stated.get("num_channels", 3) != 3:
        raise UserError(f"{source}: images have 3 channels, not {stated['num_channels']!r:.60}")
    return section


def _check_number(value: Any, kind: type, what: str) -> None:
    if not fits(value, float) or not 0 < value <= 10_000_000:
        raise UserError(f"{what} is a number above 0, not {value!r:.60}")
    if not fits(value, kind):
        raise UserError(f"{what} is a whole number, not {value!r:.60}")


def transformers_config(config: Section, end_of_text: int | None, trunk_act: str = "gelu") -> dict[str, Any]:
    """The config of transformers' CLIPModel or SiglipModel for a model_cfg of open_clip.

    `end_of_text` is the id of the tokenizer's last token, None if not known; `trunk_act` the activation of a timm
    image tower, which its config does not tell. Raises UserError for what neither class can express.
    """
    _same(config, {"nonscalar_logit_scale": (None, False), "multimodal_cfg": (None,)}, "the model")
    vision = asdict(open_clip.model.CLIPVisionCfg(**config["vision_cfg"]))
    text = asdict(open_clip.model.CLIPTextCfg(**config["text_cfg"]))
    quick = bool(config.get("quick_gelu"))
    towers = {
        "text_config": {
            "vocab_size": text["vocab_size"],
            "max_position_embeddings": text["context_length"],
            **_tower(text, text["heads"], quick),
        }
    }
    if vision["timm_model_name"]:
        return _transformers_siglip(config, vision, text, towers, trunk_act)
    _same(config, {"init_logit_bias": (None,)}, "a CLIP")
    _usual(vision, open_clip.model.CLIPVisionCfg(), IMAGE_SETTINGS, "an image tower")
    _usual(text, open_clip.model.CLIPTextCfg(), (*TEXT_SETTINGS, "eos_id"), "a text tower")
    _same(text, {"pool_type": ("argmax", "eos")}, "a text tower")
    _same({"layers": type(vision["layers"])}, {"layers": (int,)}, "an image tower")
    # transformers reads 2, an error of its first configs, as: the token with the highest id.
    highest = end_of_text if end_of_text == text["vocab_size"] - 1 else 2
    towers["text_config"]["eos_token_id"] = text["eos_id"] if text["pool_type"] == "eos" else highest
    towers["vision_config"] = {
        "image_size": _side(vision["image_size"]),
        "patch_size": _side(vision["patch_size"]),
        **_tower(vision, vision["width"] // vision["head_width"], quick),
    }
    for tower in towers.values():
        tower["projection_dim"] = config["embed_dim"]
    return {"model_type": "clip", "projection_dim": config["embed_dim"], **towers}


def _transformers_siglip(
    config: Section, vision: Section, text: Section, towers: dict[str, Any], act: str
) -> dict[str, Any]:
    name = TRUNK.fullmatch(vision["timm_model_name"])
    if name is None or name["size"] not in TRUNKS:
        raise UserError(f"transformers has no dual encoder with the image tower {vision['timm_model_name']}")
    if config.get("init_logit_bias") is None:
        raise UserError("transformers has no class for a SigLIP without init_logit_bias")
    _same(vision, {"timm_pool": ("map",), "timm_proj": ("none",)}, "an image tower")
    _same(text, {name: (value,) for name, value in SIGLIP_TEXT.items()}, "a text tower")
    _usual(text, open_clip.model.CLIPTextCfg(), (*TEXT_SETTINGS, *SIGLIP_TEXT), "a text tower")
    return {
        "model_type": "siglip",
        "text_config": {**towers["text_config"], "projection_size": config["embed_dim"]},
        "vision_config": {
            **dict(zip(SHAPE, TRUNKS[name["size"]], strict=True)),
            "image_size": int(name["image"]),
            "patch_size": int(name["patch"]),
            "hidden_act": act,
            "layer_norm_eps": 1e-6,
        },
    }


def _tower(own: Section, heads: int, quick: bool) -> dict[str, Any]:
    act = "gelu_pytorch_tanh" if (own["act_kwargs"] or {}).get("approximate") == "tanh" else "gelu"
    return {
        "hidden_size": own["width"],
        "num_hidden_layers": own["layers"],
        "num_attention_heads": heads,
        "intermediate_size": int(own["width"] * own["mlp_ratio"]),
        "hidden_act": "quick_gelu" if quick else act,
        "layer_norm_eps": (own["norm_kwargs"] or {}).get("eps", 1e-5),
    }


def _side(size: Any) -> int:
    sides = {size} if isinstance(size, int) else set(size)
    if len(sides) != 1:
        raise UserError(f"transformers' models take square images and patches, not {size}")
    return sides.pop()


def _usual(tower: Section, defaults: Any, settings: tuple[str, ...], what: str) -> None:
    """Raise unless all settings that have no counterpart in transformers have their default."""
    usual = asdict(defaults)
    _same(tower, {name: (usual[name],) for name in tower if name not in (*settings, *UNUSED)}, what)


def _same(config: Section, expected: Mapping[str, tuple[Any, ...]], what: str) -> None:
    for name, values in expected.items():
        if config.get(name) not in values:
            raise UserError(f"transformers has no class for {what} with {name} = {config.get(name)!r:.60}")


def set_trunk_activation(clip: Any, config: Section) -> None:
    """Give a timm image tower the form of GELU that its config asks for, if any.

    timm's name fixes the activation: most SigLIP towers have the exact GELU there, and its tanh approximation in
    transformers. open_clip ignores `act_kwargs` of a timm tower.
    """
    approximate = (config["vision_cfg"].get("act_kwargs") or {}).get("approximate")
    trunk = getattr(clip.visual, "trunk", None)
    if trunk is None or approximate is None:
        return
    replaced = 0
    for module in list(trunk.modules()):
        for name, child in module.named_children():
            if type(child).__name__ in GELUS:
                setattr(module, name, nn.GELU(approximate))
                replaced += 1
    if not replaced:
        raise UserError(
            f"the image tower {type(trunk).__name__} has no GELU whose form could be {approximate}"
        )


def trunk_activation(clip: Any) -> str:
    """The name in transformers of the activation of a timm image tower."""
    gelu = next((each for each in clip.visual.modules() if type(each).__name__ in GELUS), None)
    if gelu is None and getattr(clip.visual, "trunk", None) is not None:
        raise UserError("transformers has no class for a timm image tower without GELU")
    tanh = type(gelu).__name__ == "GELUTanh" or getattr(gelu, "approximate", "none") == "tanh"
    return "gelu_pytorch_tanh" if tanh else "gelu"
