"""The config of transformers' CLIPModel or SiglipModel for a model of open_clip."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tracer.core.errors import UserError
from tracer.models.huggingface.architecture import TRUNK, TRUNKS, Section
from tracer.models.open_clip_compat import open_clip

# Settings of open_clip's towers that have a counterpart in transformers.
SIZES = ("width", "layers", "mlp_ratio", "act_kwargs", "norm_kwargs")
IMAGE_SETTINGS = (*SIZES, "image_size", "patch_size", "head_width")
TEXT_SETTINGS = (*SIZES, "context_length", "vocab_size", "heads", "pool_type", "pad_id")
TEXT_SETTINGS += ("hf_tokenizer_name", "tokenizer_kwargs")
# Settings without effect in eval mode.
UNUSED = ("patch_dropout", "output_tokens", "timm_model_pretrained", "timm_drop", "timm_drop_path")


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
    _same(vision, {"timm_pool": ("map",), "timm_proj": ("none",)}, "an image tower")
    _same(text, {"no_causal_mask": (True,), "proj_bias": (True,), "pool_type": ("last",)}, "a text tower")
    settings = (*TEXT_SETTINGS, "no_causal_mask", "proj_bias")
    _usual(text, open_clip.model.CLIPTextCfg(), settings, "a text tower")
    width, layers, heads, hidden = TRUNKS[name["size"]]
    return {
        "model_type": "siglip",
        "text_config": {**towers["text_config"], "projection_size": config["embed_dim"]},
        "vision_config": {
            "hidden_size": width,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "intermediate_size": hidden,
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
