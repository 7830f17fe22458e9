"""Choices with options: values that have the annotated type, and sentences for all others."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from tracer.core.errors import UserError
from tracer.core.regularizers import REGULARIZERS, regularizer
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
    ("read", "spelling", "message"),
    [
        (adapter, "lora:rank=abc", "rank of adapter lora 'abc': expected a whole number"),
        (adapter, "lora:rank=", "rank of adapter lora '': expected a whole number"),
        (adapter, "lora:rank=true", "'true': expected a whole number"),
        (adapter, "lora:rank=2.5", "2.5: expected a whole number"),
        (adapter, "lora:rank=inf", "inf: expected a whole number"),
        (adapter, "lora:rank=1e30", "expected a number below 2^64"),
        (adapter, "lora:dropout=abc", "dropout of adapter lora 'abc': expected a number"),
        (adapter, "lora:dropout=false", "'false': expected a number"),
        (adapter, "lora:alpha=abc", "alpha of adapter lora 'abc': expected a number"),
        (adapter, "lora:alpha=nan", "'nan': expected a number"),
        (adapter, "lora:rank=4,rank=8", "rank is given twice"),
        (adapter, "lora:4,rank=8", "rank is given twice"),
        (adapter, "lora:8,16", "'16' has no option; give OPTION=VALUE with rank, alpha"),
        (adapter, "lora:rank=8,", "'' has no option"),
        (adapter, "lora:layers=attn", "unknown layers of adapter lora 'attn': did you mean attention?"),
        (adapter, "lora:factors=b", "unknown factors of adapter lora 'b': did you mean B"),
        (adapter, "prompts:image=many", "image of adapter prompts 'many': expected a whole number"),
        (regularizer, "l2sp:much", "strength of regularizer l2sp 'much': expected a number"),
        (regularizer, "l2sp:head=1", "'1': expected True or False"),
        (regularizer, "l2sp:form=los", "unknown form of regularizer l2sp 'los': did you mean loss?"),
        (regularizer, "spd:1,2", "'2' has no option"),
        (regularizer, "ftp:radius=1,radius=2", "radius is given twice"),
    ],
)
def test_misspelt_values_are_refused(read: Callable[[str], object], spelling: str, message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        read(spelling)


@pytest.mark.parametrize("name", REGULARIZERS)
@pytest.mark.parametrize("value", ["-1", "inf", "nan"])
def test_a_regularizer_that_pushes_away_or_is_no_number_is_refused(name: str, value: str) -> None:
    with pytest.raises(UserError, match=f"regularizer {name}"):
        regularizer(f"{name}:{value}")


@pytest.mark.parametrize("value", [8, True, {"rank": 8}])
def test_what_is_no_text_is_refused(value: Any) -> None:
    with pytest.raises(UserError, match=re.escape(f'adapter {value!r}: expected text such as "lora:rank=8"')):
        adapter(value)
    with pytest.raises(UserError, match='expected text such as "l2sp:strength='):
        regularizer(value)


def test_an_empty_choice_of_options_is_the_default() -> None:
    assert parse("adapter", "lora", {"lora": LoRA}) == LoRA()
