"""`tracer list` recommends, fits in 80 columns, and says what works here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracer.cli.app import main
from tracer.cli.commands import list as command
from tracer.methods.base import methods
from tracer.methods.catalogue import RECOMMENDED
from tracer.models.registry import known_models

ROOT = Path(__file__).parents[2]


def listed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["list", *arguments]) == 0
    return capsys.readouterr().out.splitlines()


def test_methods_are_recommended_first_and_take_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    lines = listed(capsys, "methods")
    assert lines[0].startswith("Start with")
    assert [line.split()[0] for line in lines[1:4]] == list(RECOMMENDED)
    assert any("docs/emojishift.md" in line for line in lines)
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines[-len(methods()) :]] == list(methods())
    assert not any("…" in line for line in lines), "a line is cut"


def test_recommended_methods_exist_and_the_page_has_them() -> None:
    page = (ROOT / "docs" / "emojishift.md").read_text()
    for name in RECOMMENDED:
        assert name in methods()
        assert methods()[name]().title in page


def test_the_long_list_has_papers_and_costs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tracer.api.terminal.console._width", 400)
    text = "\n".join(listed(capsys, "methods", "--long"))
    assert "arXiv:2404.00860" in text
    assert "extra forwards" in text


def test_models_that_work_here_come_first(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command.Download, "cached", property(lambda self: self.model == "RN50"))
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    monkeypatch.setattr(command, "cached_repositories", lambda: ["somebody/tiny"])
    lines = listed(capsys, "models")
    assert max(map(len, lines)) <= 80
    names = [line.split()[0] for line in lines[-len(known_models()) :]]
    assert names[:7] == ["RN50", "tiny-28", "tiny-32", "tiny-rn-32", *command.RECOMMENDED]
    (siglip,) = [line for line in lines if line.startswith("ViT-B-16-SigLIP ")]
    assert "needs the extra hf" in siglip


def test_with_transformers_their_models_only_need_a_download(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "find_spec", lambda name: object())
    monkeypatch.setattr(command.Download, "cached", property(lambda self: False))
    monkeypatch.setattr(command, "cached_repositories", lambda: ["somebody/tiny"])
    known_models()
    assert command._state("ViT-B-16-SigLIP") == "needs a download"
    rows = command._models(False)[1]
    assert rows[0] == ("hf-hub:somebody/tiny", "ready", "its own")


def test_weights_without_their_tokenizer_are_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "find_spec", lambda name: object())
    monkeypatch.setattr(command.Download, "cached", property(lambda self: True))
    monkeypatch.setattr(
        command, "text_files_missing", lambda text: {"a/b": "c"} if "hf_tokenizer_name" in text else {}
    )
    known_models()
    assert command._state("ViT-B-16-SigLIP") == "needs a download"
    assert command._state("ViT-B-16") == "ready"
