"""A device that is not here is told so, and never suggested."""

from __future__ import annotations

import pytest
import torch

from tracer.core.errors import UserError
from tracer.parallel.device import device


@pytest.mark.parametrize("name", ["cuda", "cuda:0", "cuda:7", "mps"])
def test_an_absent_kind_is_not_suggested(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    kind = name.partition(":")[0]
    with pytest.raises(
        UserError, match=f"^--device {name}: there is no {kind} on this machine; use --device cpu$"
    ):
        device(name)


@pytest.mark.parametrize("name", ["cup", "gpu", "meta", "xpu", ""])
def test_only_what_is_here_is_a_choice(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(UserError, match="device") as error:
        device(name)
    assert "cuda" not in str(error.value)
    assert "cpu" in str(error.value)
