"""Random tiny models of transformers in folders, with their tokenizers and image processors."""

from __future__ import annotations

import io
import string
from pathlib import Path
from typing import Any

import sentencepiece
import torch
import transformers
from timm.models import register_model
from timm.models.vision_transformer import VisionTransformer

SIZE, PATCH, CONTEXT = 8, 4, 12
TOWER = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
TRUNK = (16, 2, 2, 32)  # the same, as `architecture.TRUNKS` has it
TEXTS = ["the red dog", "a cat", "two birds on the hill"]
FAMILIES = ("clip", "siglip", "siglip2")


@register_model
def vit_wee_patch4_siglip_8(pretrained: bool = False, **kwargs: Any) -> VisionTransformer:
    """An image tower of SigLIP that timm does not have."""
    own = {name: kwargs[name] for name in ("num_classes", "global_pool") if name in kwargs}
    width, depth, heads, hidden = TRUNK
    sizes = {"embed_dim": width, "depth": depth, "num_heads": heads, "mlp_ratio": hidden / width}
    return VisionTransformer(img_size=SIZE, patch_size=PATCH, class_token=False, **sizes, **own)


def write(family: str, folder: Path, **saving: Any) -> Any:
    """Write a tiny model of a family with everything beside it, and return the model in eval mode."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = _tokenizer(family, folder)
    tokenizer.save_pretrained(folder)
    square = {"height": SIZE, "width": SIZE}
    names, size = {
        "clip": (("CLIPConfig", "CLIPModel", "CLIPImageProcessor"), {"size": {"shortest_edge": SIZE}}),
        "siglip": (("SiglipConfig", "SiglipModel", "SiglipImageProcessor"), {"size": square}),
        "siglip2": (("Siglip2Config", "Siglip2Model", "Siglip2ImageProcessor"), {}),
    }[family]
    config_class, model_class, processor_class = (getattr(transformers, name) for name in names)
    crop = {"crop_size": square} if family == "clip" else {}
    processor_class(**size, **crop).save_pretrained(folder)
    vision = {"num_patches": (SIZE // PATCH) ** 2} if family == "siglip2" else {"image_size": SIZE}
    ids = {f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("bos", "eos", "pad")}
    text = {"vocab_size": len(tokenizer), "max_position_embeddings": CONTEXT, **ids}
    joint = {"projection_dim": 24} if family == "clip" else {}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        config = config_class(
            text_config={**TOWER, **text}, vision_config={**TOWER, **vision, "patch_size": PATCH}, **joint
        )
        model = model_class(config).eval()
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(folder, **saving)
    return model


def _tokenizer(family: str, folder: Path) -> Any:
    if family == "siglip":  # reads a model of sentencepiece
        file, written = folder / "spiece.model", io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter([*TEXTS, string.ascii_lowercase] * 4),
            model_writer=written,
            vocab_size=40,
            minloglevel=2,
            bos_id=-1,
            pad_id=0,
            eos_id=1,
            unk_id=2,
            hard_vocab_limit=False,
        )
        file.write_bytes(written.getvalue())
        return transformers.SiglipTokenizer(vocab_file=str(file), model_max_length=CONTEXT)
    letters = list(string.ascii_lowercase)
    tokens = [*letters, *(f"{letter}</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    return transformers.CLIPTokenizer(vocab=vocabulary, merges=[], model_max_length=CONTEXT)


def embeddings(model: Any, folder: Path, pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Unit embeddings of normalised pixels and of `TEXTS`, computed with transformers alone."""
    tokens = transformers.AutoTokenizer.from_pretrained(folder)(
        TEXTS, padding="max_length", truncation=True, max_length=CONTEXT, return_tensors="pt"
    ).input_ids
    inputs = {"pixel_values": pixels}
    if type(model).__name__ == "Siglip2Model":
        from transformers.models.siglip2.image_processing_siglip2 import convert_image_to_patches

        patches = torch.stack([convert_image_to_patches(image, PATCH) for image in pixels])
        shapes = torch.full((len(pixels), 2), SIZE // PATCH)
        mask = torch.ones(patches.shape[:2], dtype=torch.long)
        inputs = {"pixel_values": patches, "pixel_attention_mask": mask, "spatial_shapes": shapes}
    with torch.no_grad():
        outputs = model.get_image_features(**inputs), model.get_text_features(input_ids=tokens)
    first, second = (each if isinstance(each, torch.Tensor) else each.pooler_output for each in outputs)
    return torch.nn.functional.normalize(first, dim=-1), torch.nn.functional.normalize(second, dim=-1)
