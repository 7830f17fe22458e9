"""Write a model as a folder that `from_pretrained` of transformers opens: model, image processor and tokenizer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from tracer.core.errors import UserError
from tracer.models.huggingface.architecture import transformers_config, trunk_activation
from tracer.models.huggingface.keys import to_transformers
from tracer.models.huggingface.processor import image_processor_config
from tracer.models.huggingface.source import WEIGHTS
from tracer.models.student import Student
from tracer.models.tokenizer_files import write_for_transformers
from tracer.storage.safetensors_io import write_weights

CLASSES = {"clip": "CLIP", "siglip": "Siglip"}  # how names of transformers' classes begin


def write_transformers(
    student: Student, folder: Path, pixels: Tensor, texts: list[str]
) -> list[tuple[Tensor, Tensor]]:
    """Write the model into an existing folder and open it again with transformers.

    Returns the outputs of the model, in eval mode, and of transformers: unit embeddings of these samples, whose texts
    are processed by both sides' own tokenizer, scale and bias. Raises UserError, before anything is written, for a
    model that transformers has no class for.
    """
    try:
        import transformers
    except ImportError:
        raise UserError("--format hf needs transformers: pip install 'tracer-clip[hf]'") from None
    tokenizer = student.tokeniser.tokeniser
    end = getattr(tokenizer, "eot_token_id", None)
    config = transformers_config(student.config, end, trunk_activation(student.clip))
    processing = image_processor_config(student.preprocess_cfg, config["vision_config"]["image_size"])
    prefix = CLASSES[config.pop("model_type")]
    names = (f"{prefix}{kind}" for kind in ("Config", "Model", "ImageProcessor"))
    config_class, model_class, image_class = (getattr(transformers, name) for name in names)
    with _silence(transformers):
        settings = config_class(**config, architectures=[model_class.__name__], dtype="float32")
        with torch.device("meta"):
            shapes = model_class(settings).state_dict()
        write_weights(folder / WEIGHTS, to_transformers(student.clip.state_dict(), shapes), checksum=False)
        settings.save_pretrained(folder)
        if processing["do_center_crop"]:
            image_class = transformers.CLIPImageProcessor
        image_class(**processing).save_pretrained(folder)
        write_for_transformers(tokenizer, folder)
        model = model_class.from_pretrained(folder).eval()
        length = student.config["text_cfg"].get("context_length", 77)
        theirs: Any = transformers.AutoTokenizer.from_pretrained(folder)
        padded = {"padding": "max_length", "truncation": True, "max_length": length, "return_tensors": "pt"}
        tokens = theirs(texts, **padded).input_ids
    image, text = model.get_image_features(pixel_values=pixels), model.get_text_features(input_ids=tokens)
    outputs = [(student.embed_image(pixels.to(student.mean.device)), _unit(image))]
    outputs += [(student.embed_text(student.tokenise(texts)), _unit(text))]
    scalars = {name: getattr(student.clip, name, None) for name in ("logit_scale", "logit_bias")}
    return outputs + [(own, getattr(model, name)) for name, own in scalars.items() if own is not None]


def _unit(output: Any) -> Tensor:
    """The unit embedding; transformers 5 returns it with all else that it has computed."""
    return normalize(output if isinstance(output, Tensor) else output.pooler_output, dim=-1)


@contextmanager
def _silence(transformers: Any) -> Iterator[None]:
    """Without transformers' progress bars and remarks on configs."""
    logging = transformers.utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
