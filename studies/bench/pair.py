"""EfficientNet-Lite0 at 96 pixels with MiniLM-L6 of transformers as its text tower, with random weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import pad

from studies.bench.steps import CLASSES, batch_of, captions, state_of
from studies.bench.timing import Timer, Times
from tracer.methods.base import method
from tracer.models.open_clip_compat import open_clip
from tracer.models.student import load
from tracer.storage.atomic import write_json
from tracer.training.step import step

NAME = "EfficientNet-Lite0-MiniLM"
SPECIAL = ("[PAD]", "[CLS]", "[SEP]", "[UNK]")
IMAGE: dict[str, Any] = {
    "timm_model_name": "tf_efficientnet_lite0",
    "timm_pool": "avg",
    "timm_proj": "linear",
    "image_size": 96,
}
TEXT: dict[str, Any] = {"hf_proj_type": None, "hf_pooler_type": "mean_pooler", "context_length": 77}


def register(folder: Path) -> None:
    """Make the model known to open_clip, with the files of its text tower in `folder`.

    The tokenizer has a token for each word and sign of the captions, instead of MiniLM's pieces of words.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, PreTrainedTokenizerFast

    split = pre_tokenizers.BertPreTokenizer()
    words = [word for text in captions(8 * len(CLASSES)) for word, _ in split.pre_tokenize_str(text)]
    vocabulary = {word: index for index, word in enumerate(dict.fromkeys((*SPECIAL, *words)))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = split  # pyright: ignore[reportAttributeAccessIssue]
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))  # pyright: ignore
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        unk_token="[UNK]",
    ).save_pretrained(folder)
    BertConfig(
        hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536
    ).save_pretrained(folder)
    text = {**TEXT, "hf_model_name": str(folder), "hf_tokenizer_name": str(folder)}
    write_json(folder / f"{NAME}.json", {"embed_dim": 384, "vision_cfg": IMAGE, "text_cfg": text})
    open_clip.add_model_config(folder / f"{NAME}.json")


def texts(model: str, count: int, timer: Timer) -> tuple[Times, float, tuple[int, int]]:
    """TRACER steps with texts at their own length and padded, the largest difference of embeddings, both lengths."""
    student = load(model).eval()
    own = batch_of(student, count)
    assert own.text is not None
    longest, length = student.tokeniser.tokeniser.context_length, own.text.shape[1]
    padded = own._replace(text=pad(own.text, (0, longest - length), value=0))
    with torch.no_grad():
        short, long = student(own).text, student(padded).text
    assert short is not None
    assert long is not None
    state = state_of(method("tracer").stages[0], student)
    times = timer({"own length": lambda: step(state, own), "padded": lambda: step(state, padded)})
    return times, float((short - long).abs().max()), (length, longest)
