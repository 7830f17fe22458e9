"""The choices of `--adapter`."""

from __future__ import annotations

from tracer.core.spelling import parse
from tracer.models.lora import LoRA
from tracer.models.prompt_tokens import Prompts

Adapter = LoRA | Prompts


def adapter(spelling: str) -> Adapter:
    """Parse `--adapter`: NAME, or NAME:OPTION=VALUE,…"""
    return parse("adapter", spelling, {"lora": LoRA, "prompts": Prompts})
