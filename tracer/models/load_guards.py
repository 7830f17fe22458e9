"""Guards around open_clip while it reads a model: its warnings, its errors, and numbers that are no weights."""

from __future__ import annotations

import logging
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pickle import UnpicklingError
from typing import Any

from safetensors import SafetensorError
from torch import Tensor, nn

from tracer.core.errors import UserError
from tracer.models.open_clip_compat import open_clip

# Errors that open_clip and the weight readers raise for invalid files.
UNREADABLE = (
    *(RuntimeError, ValueError, OSError, LookupError, ArithmeticError, SafetensorError),
    *(EOFError, StopIteration, AttributeError, TypeError, AssertionError, UnpicklingError),
)
HF_PACKAGES = ("transformers", "tokenizers", "sentencepiece")


@contextmanager
def quiet() -> Iterator[None]:
    """Silence open_clip's warning about random weights, and torch's advice on files that are refused."""
    level = logging.getLogger().getEffectiveLevel()
    logging.getLogger().setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"torch\.|open_clip\.", category=UserWarning)
            yield
    finally:
        logging.getLogger().setLevel(level)


@contextmanager
def real_numbers(source: str) -> Iterator[None]:
    """Raise UserError if open_clip reads integers or complex numbers where the model has weights.

    It would copy them into its parameters, where integers are rounded weights and complex ones lose a part.
    """
    original = open_clip.factory.load_checkpoint

    def refuse(model: nn.Module, weights: dict[str, Any], *_: Any) -> None:
        for name, expected in model.state_dict().items():
            read = weights.get(name, expected)
            if isinstance(read, Tensor) and expected.is_floating_point() and not read.is_floating_point():
                raise UserError(f"{source}: {name} holds numbers of type {read.dtype}, not {expected.dtype}")

    def load(model: nn.Module, *args: Any, **kwargs: Any) -> Any:
        hook = model.register_load_state_dict_pre_hook(refuse)
        try:
            return original(model, *args, **kwargs)
        finally:
            hook.remove()

    open_clip.factory.load_checkpoint = load
    try:
        yield
    finally:
        open_clip.factory.load_checkpoint = original


def check_text_tower(name: str) -> None:
    """Raise for a text tower of transformers that is none, or that comes with code: it is not run, and nobody is asked.

    Besides `auto_map`, a config may name an attention of its own, which is compiled code of the hub.
    """
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(name, trust_remote_code=False)
    if config.model_type not in open_clip.hf_model.arch_dict:
        raise UserError(f"{name} is a model of type {config.model_type!r:.60}, which is no text tower")
    attention = config._attn_implementation
    if attention not in (None, "eager", "sdpa"):
        raise UserError(
            f"{name} comes with code of its own, the attention {attention!r:.60}: it is never run"
        )


@contextmanager
def explained(model: str) -> Iterator[None]:
    """Raise errors of invalid, truncated or malicious files as a UserError of one sentence."""
    try:
        yield
    except ImportError as error:
        # An optional part of transformers is reported without the name of the package.
        package = "tracer-clip[hf]" if error.name in (None, *HF_PACKAGES) else error.name
        raise UserError(f"{model} needs a package that is missing: pip install '{package}'") from error
    except UNREADABLE as error:
        # A pickle, or TorchScript, which is a program: torch's message advises to load it without weights_only.
        if isinstance(error, UnpicklingError) or "weights_only" in str(error):
            problem = "a torch file must hold weights and nothing else"
            raise UserError(f"cannot build {model}: {problem}") from None
        if "trust_remote_code" in str(error):
            raise UserError(f"{model} comes with Python code of its own, which is never run") from None
        message = textwrap.shorten(str(error), 300, placeholder=" …") or type(error).__name__
        raise UserError(f"cannot build {model}: {message}") from error
