"""One shrunken model of every family of open_clip, built offline from its real config.

`python tests/models/families.py > docs/models.md` checks every family and writes the page.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import timm
import torch
from closeness import bound, length
from timm.models.vitamin import VitCfg, VitConvCfg

from tracer.core.batch import Batch, Scene
from tracer.core.markdown import markdown_table
from tracer.core.objective import Loss
from tracer.core.shadow import Shadow
from tracer.methods.base import method
from tracer.models.export import export
from tracer.models.gradient_cache import embed_both
from tracer.models.open_clip_compat import open_clip
from tracer.models.registry import known_models
from tracer.models.running_statistics import running_layers
from tracer.models.student import Student, load
from tracer.models.text import EndOfText, MaskedPadding
from tracer.models.towers import without_projection
from tracer.models.zero_shot import zero_shot
from tracer.parallel import World
from tracer.training.optim import Schedule, adamw
from tracer.training.setup import fit
from tracer.training.step import State, step

TEXTS = ("a dog", "a red car by the sea", "two small houses")
WORDS = (
    "a",
    "dog",
    "red",
    "car",
    "by",
    "the",
    "sea",
    "two",
    "small",
    "houses",
    "photo",
    "of",
    "digit",
    "0",
    "1",
    "2",
)
SPECIAL = {"bos": "<s>", "pad": "<pad>", "eos": "</s>", "unk": "<unk>"}  # ids 0 to 3, as in RoBERTa


@dataclass(frozen=True)
class Family:
    """A family: its configs by the beginnings of their names, the one that is shrunk, and how."""

    prefixes: tuple[str, ...]
    config: str
    trunk: dict[str, Any] = field(default_factory=dict)  # of timm's image tower
    vision: dict[str, Any] = field(default_factory=dict)
    text: dict[str, Any] = field(default_factory=dict)
    hugging_face: dict[str, Any] = field(default_factory=dict)  # config of a Hugging Face text tower
    special: str = ""


VIT = {"image_size": 32, "layers": 2, "width": 32, "head_width": 16, "patch_size": 16}
TEXT = {"context_length": 16, "width": 16, "heads": 2, "layers": 2}
TIMM_VIT = {"img_size": 32, "depth": 2, "embed_dim": 32, "num_heads": 2}
ROBERTA = {
    "vocab_size": 64,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 40,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
}
T5 = {
    "vocab_size": 64,
    "d_model": 24,
    "d_kv": 12,
    "d_ff": 32,
    "num_layers": 2,
    "num_heads": 2,
    "pad_token_id": 1,
}
M2M = {
    "vocab_size": 64,
    "d_model": 24,
    "encoder_layers": 2,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
    "encoder_layerdrop": 0.0,  # else a step may leave a layer out
    "max_position_embeddings": 40,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
}
CONVNEXT = {"depths": (1, 1, 1, 1), "dims": (8, 8, 16, 16)}
SWIN = {"img_size": 32, "embed_dim": 8, "depths": (1, 1), "num_heads": (1, 2), "window_size": 4}
FASTVIT = {"layers": (1, 1, 1, 1), "embed_dims": (8, 16, 32, 64)}
VITAMIN = {
    "img_size": 32,
    "depth": 1,
    "embed_dim": 32,
    "num_heads": 2,
    "embed_cfg": VitCfg(
        embed_dim=(8, 16, 32),
        depths=(1, 1, 1),
        stem_width=8,
        conv_cfg=VitConvCfg(norm_layer="layernorm2d", norm_eps=1e-6),
        head_type="1d",
    ),
}

FAMILIES = {
    "OpenAI ViT": Family(
        (
            "ViT-B-16",
            "ViT-B-32",
            "ViT-L-14",
            "ViT-L-16",
            "ViT-M",
            "ViT-S-",
            "ViT-H-14",
            "ViT-H-16",
            "ViT-bigG-14",
            "ViT-e-14",
            "ViT-g-14",
        ),
        "ViT-B-32",
        vision=VIT,
        text=TEXT,
    ),
    "OpenAI ResNet": Family(
        ("RN",), "RN50", vision={"image_size": 32, "layers": [1, 1, 1, 1], "width": 8}, text=TEXT
    ),
    "ConvNeXt": Family(("convnext",), "convnext_base", trunk=CONVNEXT, vision={"image_size": 32}, text=TEXT),
    "Swin": Family(
        ("swin",), "swin_base_patch4_window7_224", trunk=SWIN, vision={"image_size": 32}, text=TEXT
    ),
    "timm ViT": Family(
        ("vit_",), "vit_medium_patch16_gap_256", trunk=TIMM_VIT, vision={"image_size": 32}, text=TEXT
    ),
    "EVA": Family(("EVA",), "EVA02-B-16", trunk=TIMM_VIT, vision={"image_size": 32}, text=TEXT),
    "SigLIP": Family(
        ("ViT-B-16-SigLIP", "ViT-L-16-SigLIP", "ViT-SO400M-14-SigLIP", "ViT-SO400M-16-SigLIP"),
        "ViT-B-16-SigLIP",
        trunk=TIMM_VIT,
        vision={"image_size": 32},
        text={**TEXT, "width": 32, "vocab_size": 64},
    ),
    "SigLIP 2": Family(
        (
            "ViT-B-16-SigLIP2",
            "ViT-B-32-SigLIP2",
            "ViT-L-16-SigLIP2",
            "ViT-SO400M-14-SigLIP2",
            "ViT-SO400M-16-SigLIP2",
            "ViT-gopt-16-SigLIP2",
        ),
        "ViT-B-16-SigLIP2",
        trunk=TIMM_VIT,
        vision={"image_size": 32},
        text={**TEXT, "width": 32, "vocab_size": 64},
    ),
    "CLIPA": Family(
        ("ViT-H-14-CLIPA", "ViT-L-14-CLIPA", "ViT-bigG-14-CLIPA"),
        "ViT-H-14-CLIPA",
        vision=VIT,
        text={**TEXT, "vocab_size": 64},
    ),
    "CoCa": Family(("coca",), "coca_ViT-B-32", vision={**VIT, "attn_pooler_heads": 2}, text=TEXT),
    "MobileCLIP": Family(
        ("MobileCLIP-",), "MobileCLIP-S1", trunk=FASTVIT, vision={"image_size": 64}, text=TEXT
    ),
    "MobileCLIP 2": Family(
        ("MobileCLIP2-",), "MobileCLIP2-S0", trunk=FASTVIT, vision={"image_size": 64}, text=TEXT
    ),
    "ViTamin": Family(("ViTamin",), "ViTamin-S", trunk=VITAMIN, vision={"image_size": 32}, text=TEXT),
    "PE": Family(("PE-",), "PE-Core-B-16", trunk=TIMM_VIT, vision={"image_size": 32}, text=TEXT),
    "MetaCLIP 2": Family(
        ("ViT-H-14-worldwide", "ViT-L-14-worldwide", "ViT-bigG-14-worldwide"),
        "ViT-H-14-worldwide-378",
        vision=VIT,
        text={**TEXT, "vocab_size": 64},
    ),
    "XLM-RoBERTa": Family(
        ("xlm-roberta",),
        "xlm-roberta-base-ViT-B-32",
        vision=VIT,
        hugging_face={"model_type": "xlm-roberta", **ROBERTA},
    ),
    "RoBERTa": Family(
        ("roberta",), "roberta-ViT-B-32", vision=VIT, hugging_face={"model_type": "roberta", **ROBERTA}
    ),
    "mT5": Family(("mt5",), "mt5-base-ViT-B-32", vision=VIT, hugging_face={"model_type": "mt5", **T5}),
    "NLLB-CLIP": Family(
        ("nllb",),
        "nllb-clip-base-siglip",
        trunk=TIMM_VIT,
        vision={"image_size": 32},
        hugging_face={"model_type": "m2m_100", **M2M},
    ),
}


@contextmanager
def shrunk_trunks() -> Iterator[None]:
    """timm's models at the sizes given above, for as long as the context lasts."""
    sizes = {_vision(family)["timm_model_name"]: family.trunk for family in FAMILIES.values() if family.trunk}
    create = timm.create_model

    def smaller(name: str, **asked: Any) -> Any:
        return create(name, **{**sizes.get(name, {}), **asked})

    timm.create_model = smaller
    try:
        yield
    finally:
        timm.create_model = create


def build(name: str, folder: Path) -> Student:
    """The shrunken model of a family, with random weights and a small tokenizer; call it inside `shrunk_trunks`."""
    family = FAMILIES[name]
    config = deepcopy(_config(family.config))
    config["embed_dim"] = 32
    config["vision_cfg"] |= family.vision
    text = config["text_cfg"] = {**config["text_cfg"], **family.text}
    if "multimodal_cfg" in config:
        config["multimodal_cfg"] |= {**family.text, "attn_pooler_heads": 2}
    if "hf_tokenizer_name" in text:
        text["hf_tokenizer_name"] = str(tokenizer_folder(folder))
    if family.hugging_face:
        tower = folder / name
        tower.mkdir(exist_ok=True)
        (tower / "config.json").write_text(json.dumps(family.hugging_face))
        text |= {
            "hf_model_name": str(tower),
            "hf_proj_type": text.get("hf_proj_type", "mlp"),
            "context_length": 16,
        }
    file = folder / f"{name.replace(' ', '-')}.json"
    file.write_text(json.dumps(config))
    return load(str(file), seed=1)


def tokenizer_folder(folder: Path) -> Path:
    """A folder with a word tokenizer in Hugging Face's format, with the special tokens of RoBERTa."""
    place = folder / "tokenizer"
    place.mkdir(exist_ok=True)
    ids = {word: index for index, word in enumerate((*SPECIAL.values(), *WORDS))}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    ends = {token: {"id": token, "ids": [ids[token]], "tokens": [token]} for token in ("<s>", "</s>")}
    first, last = ({"SpecialToken": {"id": token, "type_id": 0}} for token in ends)
    tokenizer = {
        "version": "1.0",
        "added_tokens": [{"id": ids[t], "content": t, "special": True, **flags} for t in SPECIAL.values()],
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [first, {"Sequence": {"id": "A", "type_id": 0}}, last],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": ends,
        },
        "model": {"type": "WordLevel", "vocab": ids, "unk_token": SPECIAL["unk"]},
    }
    names = {f"{kind}_token": token for kind, token in SPECIAL.items()} | {"sep_token": SPECIAL["eos"]}
    config = {"tokenizer_class": "PreTrainedTokenizerFast", **names}
    (place / "tokenizer.json").write_text(json.dumps(tokenizer))
    (place / "tokenizer_config.json").write_text(json.dumps(config))
    return place


def batch(student: Student, count: int = 5) -> Batch:
    """Noise with captions, of the model's size."""
    size = student.preprocess_cfg["size"]
    height, width = (size, size) if isinstance(size, int) else size
    generator = torch.Generator().manual_seed(2)
    image = torch.randint(256, (count, 3, height, width), dtype=torch.uint8, generator=generator)
    caption = torch.arange(count) % len(TEXTS)
    return Batch(image, student.tokenise(TEXTS), label=caption, caption=caption)


def text_gap(student: Student) -> float:
    """The largest difference of the text embeddings from open_clip's, which pads every text to the full length."""
    padded = student.tokeniser.tokeniser(list(TEXTS))
    with torch.no_grad():
        expected = student.clip.eval().encode_text(padded, normalize=True)
        return float((student.eval().embed_text(student.tokenise(TEXTS)) - expected).abs().max())


def head_gap(student: Student) -> float:
    """The largest difference of the zero-shot classifier from open_clip's."""
    templates = ("a photo of {}", "{}")
    expected = open_clip.build_zero_shot_classifier(
        student.clip.eval(), student.tokeniser.tokeniser, list(TEXTS), [each.format for each in templates]
    )
    return float((zero_shot(student, TEXTS, templates) - expected.T).abs().max())


def tracer_step(student: Student) -> tuple[State, Loss]:
    """One step of TRACER with its defaults, and the state after it."""
    stage = fit(method("tracer").stages[0], student)
    stage.tune(student)
    student.frozen_statistics = True  # as of a pretrained start
    student.train()
    policy = stage.policy(2)
    assert policy is not None
    state = State(
        stage=stage,
        student=student,
        shadow=Shadow(student, policy, steps=2),
        optimiser=adamw(student, 0.1),
        regularizer=None,
        schedule=Schedule(1e-3, 0, 2),
        world=World("cpu", "fp32"),
    )
    return state, step(state, batch(student))


def chunk_gap(student: Student) -> float:
    """The largest relative difference of a gradient of TRACER's loss in chunks of two images, in float64."""
    stage = fit(method("tracer").stages[0], student)
    student = deepcopy(student).double().eval().requires_grad_(True)  # without dropout and batch statistics
    teacher = deepcopy(student).requires_grad_(False)
    for parameter in teacher.parameters():
        parameter += 1e-2
    gradients = []
    for chunk in (None, 2):
        student.zero_grad(set_to_none=True)
        own = batch(student)
        seen, taught = embed_both(student, teacher, own, stage.objective.needs, chunk)
        stage.objective(Scene(seen, taught, own.label)).total.backward()
        gradients.append({name: p.grad for name, p in student.named_parameters() if p.grad is not None})
    whole, parts = gradients
    assert whole.keys() == parts.keys()
    largest = max(float(gradient.abs().max()) for gradient in whole.values())
    return max(float((parts[name] - whole[name]).abs().max()) for name in whole) / largest


def export_gap(student: Student, folder: Path) -> float:
    """The largest difference of the embeddings of the model that comes back from its export, tokenizer included."""
    export(student.eval(), folder)
    back, own = load(str(folder)).eval(), batch(student)
    if not torch.equal(back.tokenise(TEXTS), student.tokenise(TEXTS)):
        return float("inf")
    with torch.no_grad():
        seen, other = student(own), back(own)
    assert seen.text is not None
    return float(max((seen.image - other.image).abs().max(), (seen.text - other.text).abs().max()))


def configs(name: str) -> list[str]:
    """The configs of a family: each belongs to the family with the longest beginning of its name."""
    longest = {
        model: max(
            (len(prefix), family)
            for family, entry in FAMILIES.items()
            for prefix in ("", *entry.prefixes)
            if model.startswith(prefix)
        )
        for model in known_models()
    }
    return [model for model, (length, family) in longest.items() if family == name and length]


def peculiarities(student: Student) -> str:
    """What is special about a model, read off the model itself."""
    end, notes = student.tokeniser.end, []
    notes.append(
        "text cut at its end"
        if isinstance(end, EndOfText)
        else "text cut at its masked padding"
        if isinstance(end, MaskedPadding)
        else "text keeps its padding"
    )
    if student.bias is not None:
        notes.append("sigmoid loss with a bias")
    if towers := without_projection(student.clip):
        notes.append(f"no penalty on projections: the {' and '.join(towers)} tower has none")
    if running_layers(student):
        notes.append("BatchNorm, whose statistics stay the pretrained ones")
    if hasattr(student.clip, "text_decoder"):
        notes.append("its text decoder is not trained")
    if "hf_tokenizer_name" in student.config["text_cfg"]:
        notes.append("needs `tracer-clip[hf]`")
    return "; ".join(notes)


def _config(name: str) -> dict[str, Any]:
    known_models()
    return open_clip.get_model_config(name) or {}


def _vision(family: Family) -> dict[str, Any]:
    return _config(family.config)["vision_cfg"]


def works(name: str, folder: Path) -> str:
    """What was checked of a family, in words; raises if a check fails."""
    student = build(name, folder)
    special = peculiarities(student)
    gaps = (
        text_gap(student),
        head_gap(student),
        chunk_gap(student),
        export_gap(student, folder / f"{name} out"),
    )
    if max(gaps) > bound(length(student), dtype=torch.float32):
        raise AssertionError(f"{name}: {gaps}")
    _, loss = tracer_step(student)
    if not loss.total.isfinite():
        raise AssertionError(f"{name}: the loss is {float(loss.total)}")
    return special


INTRODUCTION = """\
# Models

This page is generated: `python tests/models/families.py > docs/models.md` builds a shrunken model of every family of
open_clip from one of its own configs, offline and with random weights, and checks it. A family is listed as working if
its texts and its zero-shot classifier equal open_clip's, gradients in chunks equal those of the whole batch
(without dropout and batch statistics), its export opens again with the same tokens and embeddings, and a step of
TRACER gives a finite loss; all differences are of the size of rounding.
`tests/models/test_families.py` makes the same checks. The last column is read off the config that was checked.
"""
NOTES = """
## What is special

- **Text is cut at its end** where that is exact: in causal towers that pool at the end of the text, and in Hugging Face
  towers, which mask their padding. SigLIP, MobileCLIP and CLIPA attend to their padding, and CoCa puts its class token
  behind it: their texts are embedded at full length. A frozen text tower (`--tune image`) that is not CLIP's own embeds
  each distinct caption once, and its dropout is off.
- **A logit bias** means the sigmoid loss ([Methods](methods.md)).
- **The penalty on projections** of TRACER and CaRot is left out, with a notice, where a tower ends without a matrix.
- **Weights in a file** do not say how their pixels were normalised and whether they need QuickGELU. tracer takes what
  all published weights of that config agree on; where they differ, it asks for `--pretrained FILE@TAG`.
- **`tracer-clip[hf]`** installs transformers, which these tokenizers and text towers need.
"""


def page() -> str:
    """The text of docs/models.md."""
    with TemporaryDirectory() as folder, shrunk_trunks():
        rows = [
            (name, str(len(configs(name))), f"`{family.config}`", "yes", works(name, Path(folder)))
            for name, family in FAMILIES.items()
        ]
    table = markdown_table(("family", "configs", "checked", "works", "special"), rows, align_right=False)
    return f"{INTRODUCTION}\n{table}\n{NOTES}"


if __name__ == "__main__":
    sys.stdout.write(page())
