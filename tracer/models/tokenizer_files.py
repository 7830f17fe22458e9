"""The files of a model's tokenizer, as transformers reads them."""

from __future__ import annotations

import json
import string
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tracer.core.errors import UserError
from tracer.models.open_clip_compat import open_clip
from tracer.storage.atomic import write_json

# open_clip's names of special tokens, and CLIP's in transformers.
SPECIAL = {"<start_of_text>": "<|startoftext|>", "<end_of_text>": "<|endoftext|>"}


def from_transformers(tokenizer: Any) -> bool:
    """Whether this tokenizer of open_clip is one of transformers."""
    return isinstance(tokenizer, open_clip.tokenizer.HFTokenizer)


def for_transformers(tokenizer: Any) -> bool:
    """Whether its files can be written for transformers: that package is here."""
    return from_transformers(tokenizer) or find_spec("transformers") is not None


def write_for_transformers(tokenizer: Any, folder: Path) -> None:
    """Write files with which transformers alone does what `tokenizer` does in open_clip, its cleaning included."""
    if isinstance(tokenizer, open_clip.SimpleTokenizer):
        _write_bpe(tokenizer, folder)
    elif from_transformers(tokenizer) and not tokenizer.tokenizer_mode and not tokenizer.strip_sep_token:
        tokenizer.tokenizer.save_pretrained(folder)
        _add_cleaning(folder, tokenizer.clean_fn.__name__.removeprefix("_clean_"))
    else:
        raise UserError(f"the tokenizer {type(tokenizer).__name__} of open_clip has no form in transformers")


def _write_bpe(tokenizer: Any, folder: Path) -> None:
    """CLIP's own tokenizer, from the table in open_clip."""
    try:
        from transformers import CLIPTokenizer
    except ImportError:
        raise UserError("--format hf needs transformers: pip install 'tracer-clip[hf]'") from None
    vocabulary = {SPECIAL.get(token, token): number for token, number in tokenizer.encoder.items()}
    merges = ["#version: 0.2", *(" ".join(pair) for pair in tokenizer.bpe_ranks)]
    (folder / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False), encoding="utf-8")
    (folder / "merges.txt").write_text("\n".join(merges) + "\n", encoding="utf-8")
    own = CLIPTokenizer.from_pretrained(folder, model_max_length=tokenizer.context_length)
    own.save_pretrained(folder)


def _add_cleaning(folder: Path, cleaning: str) -> None:
    """Put open_clip's cleaning before the normalization in tokenizer.json; one without that file cleans by itself."""
    spaces = [{"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "}]
    spaces += [{"type": "Strip", "strip_left": True, "strip_right": True}]
    lower: list[dict[str, Any]] = [{"type": "Lowercase"}]
    punctuation = "".join(f"\\{sign}" for sign in string.punctuation)
    removal = [
        {"type": "Replace", "pattern": {"String": "_"}, "content": " "},
        {"type": "Replace", "pattern": {"Regex": f"[{punctuation}]"}, "content": ""},
    ]
    steps = {"canonicalize": [*removal, *lower, *spaces], "lower": [*lower, *spaces]}.get(cleaning, [])
    file, settings = folder / "tokenizer.json", folder / "tokenizer_config.json"
    if not steps or not file.is_file():
        return
    content = json.loads(file.read_text(encoding="utf-8"))
    last = [content["normalizer"]] if content.get("normalizer") else []
    content["normalizer"] = {"type": "Sequence", "normalizers": [*steps, *last]}
    file.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    # The class of one family would take its own normalization; this one takes the file's.
    stated = json.loads(settings.read_text(encoding="utf-8"))
    write_json(settings, {**stated, "tokenizer_class": "PreTrainedTokenizerFast"})
