"""Choices with options: values that have the annotated type, and sentences for all others."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tracer.core.errors import UserError
from tracer.core.regularizers import regularizer
from tracer.core.spelling import parse
from tracer.models.adapters import adapter
from tracer.models.lora import LoRA
from tracer.models.prompt_tokens import Prompts


def test_values_have_the_annotated_type() -> None:
    assert adapter("lora:16") == LoRA(16)
    assert adapter("lora:4.0,alpha=2,dropout=1e-1,layers=mlp") == LoRA(4, 2.0, 0.1, "mlp")
    assert str(adapter("lora:4.0")).startswith("lora:rank=4,")
    assert adapter("prompts:0,text=3") == Prompts(0, 3)


@pytest.mark.parametrize(
    ("spelling", "message"),
    [
        ("lora:rank=abc", "adapter lora: rank abc: expected a whole number"),
        ("lora:rank=", "adapter lora: rank '': expected a whole number"),
        ("lora:rank=true", "rank true: expected a whole number"),
        ("lora:rank=inf", "rank inf: expected a whole number"),
        ("lora:rank=1e30", "rank 1e30: expected a whole number"),
        ("lora:dropout=abc", "dropout abc: expected a number"),
        ("lora:dropout=false", "dropout false: expected a number"),
        ("lora:alpha=abc", "alpha abc: expected a number"),
        ("lora:alpha=nan", "alpha nan: expected a number"),
        ("lora:rank=4,rank=8", "rank is given twice"),
        ("lora:4,rank=8", "rank is given twice"),
        ("lora:8,16", "'16' has no option; give OPTION=VALUE with rank, alpha"),
        ("lora:rank=8,", "'' has no option"),
        ("lora:layers=attn", "unknown layers of adapter lora 'attn': did you mean attention?"),
        ("lora:factors=b", "unknown factors of adapter lora 'b': did you mean B"),
        ("prompts:image=many", "image many: expected a whole number"),
    ],
)
def test_misspelt_values_of_adapters_are_refused(spelling: str, message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        adapter(spelling)


@pytest.mark.parametrize(
    ("spelling", "message"),
    [
        ("l2sp:much", "regularizer l2sp: strength much: expected a number"),
        ("l2sp:head=1", "head 1: expected true or false"),
        ("l2sp:form=los", "unknown form of regularizer l2sp 'los': did you mean loss?"),
        ("spd:1,2", "'2' has no option"),
        ("ftp:radius=1,radius=2", "radius is given twice"),
    ],
)
def test_misspelt_values_of_regularizers_are_refused(spelling: str, message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        regularizer(spelling)


@pytest.mark.parametrize("value", [8, True, {"rank": 8}])
def test_what_is_no_text_is_refused(value: Any) -> None:
    with pytest.raises(UserError, match=re.escape(f'adapter {value!r}: expected text such as "lora:rank=8"')):
        adapter(value)
    with pytest.raises(UserError, match='expected text such as "l2sp:strength='):
        regularizer(value)


def test_an_empty_choice_of_options_is_the_default() -> None:
    assert parse("adapter", "lora", {"lora": LoRA}) == LoRA()
