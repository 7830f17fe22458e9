"""A model of transformers is finetuned, exported with its card, and uploaded only when asked."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_transformers as tiny

import tracer
from tracer.api import export as push
from tracer.cli import main
from tracer.core.errors import UserError
from tracer.models.open_clip_compat import open_clip
from tracer.report.model_card import model_card
from tracer.report.templates import code, fenced, line
from tracer.runs.run import Run


class Hub:
    """Stands in for huggingface_hub's HfApi and keeps what it is asked."""

    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    failure: Exception | None = None

    def whoami(self) -> dict[str, str]:
        if Hub.failure is not None:
            raise Hub.failure
        return {"name": "somebody"}

    def create_repo(self, name: str, **options: Any) -> str:
        Hub.calls += (("create", {"name": name, **options}),)
        return f"https://huggingface.co/{name}"

    def upload_folder(self, **options: Any) -> None:
        files = sorted(file.name for file in Path(options["folder_path"]).iterdir())
        Hub.calls += (("upload", {**options, "files": files}),)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> type[Hub]:
    Hub.calls, Hub.failure = (), None
    monkeypatch.setattr(push, "HfApi", Hub)
    monkeypatch.setattr(push, "unreachable_hub", lambda: None)
    return Hub


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A finished run of two steps that began with a CLIP folder of transformers."""
    home = tmp_path_factory.mktemp("secret-home")
    tiny.write("clip", home / "base")
    (home / "base" / "README.md").write_text("---\nlicense: apache-2.0\n---\n# base\n")
    images = np.random.default_rng(0).integers(0, 256, (40, tiny.SIZE, tiny.SIZE, 3), np.uint8)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "1 of 2 prompts .* will be cut")
        patch.setattr(open_clip, "IMAGENET_CLASSNAMES", open_clip.IMAGENET_CLASSNAMES[:24])
        return tracer.finetune(
            (images, np.arange(40) % 2),
            classes=["cat", "<b>dog</b>"],
            model=str(home / "base"),
            out=home / "run",
            callback=lambda report: None,
            steps=2,
            batch=4,
            templates="a {}",
            augment="none",
            device="cpu",
        )


def test_the_card_says_what_was_learned_on_what_and_how(run: Run) -> None:
    card = model_card(run.folder, "result", "hf", "somebody/model")
    assert card.startswith("---\nlibrary_name: transformers\n")
    assert "license: apache-2.0" in card
    change = run.result["changes"]["task"]
    assert f"| {change['n']} |" in card
    assert f"{100 * change['after'][1]:.1f} ±" in card
    assert "tracer train tracer --data" in card
    assert "\\<b\\>dog" in card
    assert "2 steps" in card
    assert "Data: not known to tracer" in card
    assert "secret-home" not in card  # no folder of this machine
    assert "held out" in card


def test_a_card_claims_nothing_for_weights_that_were_not_measured(run: Run) -> None:
    assert "not measured" in model_card(run.folder, "student", "hf", "x")
    assert "±" not in model_card(run.folder, "student", "hf", "x")
    assert "as they were" in model_card(run.folder, "pretrained", "open_clip", "x")


def test_an_export_is_uploaded_when_asked(
    run: Run, hub: type[Hub], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "hf"
    arguments = ["export", str(run.folder), "--format", "hf", "--out", str(out)]
    assert main([*arguments, "--push-to", "somebody/model"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "its embeddings differ by at most" in printed
    assert "uploaded to https://huggingface.co/somebody/model" in printed
    (_, created), (_, uploaded) = hub.calls
    assert created == {"name": "somebody/model", "private": True, "exist_ok": True}
    assert uploaded["folder_path"] == out
    assert {"README.md", "config.json", "model.safetensors", "tokenizer.json"} <= set(uploaded["files"])
    assert (out / "README.md").read_text().count("# somebody/model") == 1


def test_nothing_is_uploaded_unasked(run: Run, hub: type[Hub], tmp_path: Path) -> None:
    out = tracer.export(run, tmp_path / "plain")
    assert hub.calls == ()
    assert "library_name: open_clip" in (out / "README.md").read_text()
    assert tracer.load(out).embed_text("a cat").shape == (1, 24)


@pytest.mark.parametrize(
    ("name", "failure", "message"),
    [
        ("model", None, "OWNER/model"),
        ("a b/c", None, "OWNER/NAME"),
        ("somebody/model", OSError("401"), "hf auth login"),
    ],
)
def test_an_upload_that_cannot_succeed_is_refused_before_any_work(
    name: str, failure: Exception | None, message: str, run: Run, hub: type[Hub], tmp_path: Path
) -> None:
    hub.failure = failure
    with pytest.raises(UserError, match=message):
        tracer.export(run, tmp_path / "out", push_to=name)
    assert list(tmp_path.iterdir()) == []
    assert hub.calls == ()


def test_without_network_an_upload_is_refused(run: Run, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(push, "unreachable_hub", lambda: "the hub does not answer")
    with pytest.raises(UserError, match="needs the network, and the hub does not answer"):
        tracer.export(run, tmp_path / "out", push_to="somebody/model")


@pytest.mark.parametrize("name", ["\x1b[31mred", "\u202eevil", "a\n# b", "x```\n# y", "`id`", "<b>"])
def test_names_in_a_card_cannot_steer_a_terminal_or_end_their_place(name: str) -> None:
    for written in (line(name), code(name), fenced(name)):
        assert all(each.isprintable() or each == "\n" for each in written)
    assert "\n" not in line(name) + code(name)
    first, *inside, last = fenced(name).split("\n")
    assert first == last
    assert first not in "\n".join(inside)
