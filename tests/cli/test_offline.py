"""Without a network: one sentence that says which file to fetch, soon, and nothing left behind."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from studies.faults.process import free_port, run_command
from tracer.cli import dry_run
from tracer.cli.app import main
from tracer.core.errors import UserError
from tracer.models import download
from tracer.models.download import Download, host_and_port, unreachable
from tracer.models.open_clip_compat import open_clip
from tracer.models.registry import known_models, locate
from tracer.training.estimate import Estimate
from tracer.training.footprint import Footprint


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub does not answer, no proxy is set, and nothing is cached."""
    monkeypatch.setattr(download.constants, "ENDPOINT", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setattr(download.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


@pytest.mark.usefixtures("offline")
def test_the_default_model_without_weights_and_network(tmp_path: Path) -> None:
    done = run_command(["train", "--data", "digits"], inject=lambda: os.chdir(tmp_path))
    assert done.code == 2
    (message,) = done.output.strip().splitlines()
    for part in (
        "huggingface.co/timm/vit_base_patch16_clip_224.openai",
        "open_clip_model.safetensors",
        "--model ViT-B-16 --pretrained FILE@openai",
    ):
        assert part in message
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        ("nobody answers", "are not on this machine and nobody answers: on another machine fetch"),
        (None, "are not on this machine: training downloads them from"),
    ],
)
def test_a_dry_run_says_that_the_weights_are_not_here(
    problem: str | None,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def no_download(config: object) -> None:
        raise AssertionError("a dry run downloads nothing")

    monkeypatch.setattr(download, "unreachable", lambda url: problem)
    monkeypatch.setattr(download.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(open_clip, "download_pretrained", no_download)
    monkeypatch.setattr(dry_run, "estimate", lambda settled: Estimate(1, 1, 1, 1, 1, 1, 1, None))
    monkeypatch.setattr(dry_run, "_duration", lambda settled, device: "")
    monkeypatch.setattr(dry_run, "_verdict", lambda *_: ("fits", None))
    monkeypatch.setattr(dry_run, "footprint", lambda *_: Footprint(1, 1, 1, 1))
    assert main(["train", "--data", "digits", "--model", "ViT-B-32", "--dry-run", "--device", "cpu"]) == 0
    assert f"the weights 'openai' of ViT-B-32 {said}" in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("arguments", [["eval", "ViT-B-32"], ["eval", "hf-hub:timm/ViT-B-16-SigLIP"]])
def test_it_is_refused_within_ten_seconds(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    started = time.monotonic()
    assert main([*arguments, "--data", "digits", "--device", "cpu"]) == 2
    assert time.monotonic() - started < 10
    assert "127.0.0.1 does not answer: on another machine" in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.parametrize("model", ["ViT-B-32", "hf-hub:timm/ViT-B-16-SigLIP"])
@pytest.mark.parametrize(
    ("command", "flag"),
    [
        ("train", "--data"),
        ("train", "--retain"),
        ("train", "--held-out"),
        ("train", "--templates"),
        ("eval", "--data"),
        ("eval", "--templates"),
    ],
)
def test_a_misspelt_flag_is_not_hidden_by_a_missing_network(
    command: str,
    model: str,
    flag: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(download, "unreachable", lambda url: "nobody answers")
    monkeypatch.setattr(download.constants, "HF_HUB_CACHE", str(tmp_path))
    words = ["eval", model] if command == "eval" else ["train", "--model", model]
    data = [] if flag == "--data" else ["--data", "digits"]
    assert main([*words, *data, flag, "digts", "--device", "cpu"]) == 2
    printed = capsys.readouterr().err
    assert "digts" in printed
    assert "nobody answers" not in printed


@pytest.mark.usefixtures("offline")
def test_a_model_of_the_hub_whose_weights_are_not_here(tmp_path: Path) -> None:
    """Its config may be: from another command, or from a download that was cut off."""
    snapshot = tmp_path / "cache" / "models--a--b" / "snapshots" / "1a2b"
    snapshot.mkdir(parents=True)
    (snapshot.parents[1] / "refs").mkdir()
    (snapshot.parents[1] / "refs" / "main").write_text("1a2b")
    config = {"model_cfg": open_clip.get_model_config("ViT-B-32")}
    (snapshot / "open_clip_config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match="the weights of hf-hub:a/b are not on this machine and") as raised:
        locate("hf-hub:a/b").fetch()
    assert "hf download a/b" in str(raised.value)
    assert locate("hf-hub:a/b").outlook() == str(raised.value)


def test_a_host_that_neither_answers_nor_refuses_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "CONNECT_TIMEOUT", 0.1)
    monkeypatch.setattr(download, "_connects", lambda host, port: time.sleep(30))
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    started = time.monotonic()
    assert unreachable("https://huggingface.co") == "huggingface.co does not answer"
    assert time.monotonic() - started < 5


def test_hosts_of_addresses() -> None:
    assert host_and_port("https://huggingface.co") == ("huggingface.co", 443)
    assert host_and_port("http://127.0.0.1:9/a/b") == ("127.0.0.1", 9)


def test_every_download_says_what_to_fetch() -> None:
    """A file alone does not say how images are normalised or that it needs QuickGELU: the tag does."""
    for name in known_models():
        for tag in open_clip.list_pretrained_tags_by_model(name):
            each = Download(name, tag)
            assert each.files[0] in each._advice
            assert f"--model {name} --pretrained FILE@{tag}" in each._advice or not each.repository
