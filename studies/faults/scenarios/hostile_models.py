"""Model folders of strangers: code, unknown keys, tokenizers, broken weights; nothing is run or loaded wrongly."""

from __future__ import annotations

import copy
import json
import struct
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from studies.faults.verdict import Verdict, judged, lost
from studies.faults.workspace import Workspace
from tracer.models.config_check import KWARGS, TOKENIZER, TOP
from tracer.models.export import export
from tracer.models.registry import locate
from tracer.models.student import load

CODE = {"trust_remote_code": True}
VALUES: tuple[Any, ...] = (
    CODE,
    {"auto_map": {"x": "evil.Evil"}},
    "os.system",
    [],
    {},
    None,
    -1,
    0,
    10**12,
    1e308,
)
VALUES += (
    float("nan"),
    True,
    "evil.py",
    "../evil",
    "hf_hub:evil/evil",
    [1, "a", None],
    {"a": {"b": CODE}},
    "x" * 1000,
)
KEYS = (
    "trust_remote_code",
    "auto_map",
    "code_revision",
    "hf_kwargs",
    "tokenizer_kwargs",
    "act_kwargs",
    "__class__",
)
KEYS += (
    "layers",
    "width",
    "timm_model_name",
    "hf_tokenizer_name",
    "mean",
    "std",
    "size",
    "custom_text",
    "embed_dim",
)


def trials(workspace: Workspace) -> Iterator[Verdict]:
    """A config is refused, or holds allowed keys with plain values only; weights are refused, or loaded as written."""
    folder = workspace.new_path("stranger")
    export(load("tiny-28"), folder)
    mark = workspace.new_path("ran")
    (folder / "evil.py").write_text(f"open({str(mark)!r}, 'w').close()\nclass Evil: pass\n")
    config = json.loads((folder / "open_clip_config.json").read_text())
    del config["weights_digest"]
    for number in range(workspace.count(60, 7000)):
        changed = copy.deepcopy(config)
        for _ in range(workspace.rng.randint(1, 3)):
            _change(changed, workspace.rng)
        yield judged(f"config {number}", partial(_located, folder, changed))
    (folder / "open_clip_config.json").write_text(json.dumps(config))
    whole = load_file(folder / "open_clip_model.safetensors")
    for number in range(workspace.count(6, 260)):
        yield judged(f"weights {number}", partial(_loaded, folder, whole, workspace.rng))
    save_file(whole, folder / "open_clip_model.safetensors")
    for number in range(workspace.count(1, 12)):
        beside = workspace.copy(
            folder, f"stranger-{number}"
        )  # tokenisers are cached by the name of their folder
        yield judged(f"tokenizer {number}", partial(_tokenizer, beside, config, workspace.rng))
    if mark.exists():
        yield lost("a Python file beside a model", "it was run")


def _places(value: dict[str, Any]) -> list[dict[str, Any]]:
    below = [place for each in value.values() if isinstance(each, dict) for place in _places(each)]
    return [value, *below]


def _change(config: dict[str, Any], rng: Random) -> None:
    place = rng.choice(_places(config))
    keys = [*place, *KEYS] if rng.random() < 0.5 else [*KEYS]
    place[rng.choice(keys)] = copy.deepcopy(rng.choice(VALUES))


def _located(folder: Path, config: dict[str, Any]) -> None:
    (folder / "open_clip_config.json").write_text(json.dumps(config))
    accepted = locate(str(folder)).config
    assert set(accepted) <= set(TOP), set(accepted) - set(TOP)
    for place in _places(accepted):
        assert not {*KEYS[:4], "__class__"} & set(place), f"{sorted(place)} in {config}"
    for part in ("vision_cfg", "text_cfg", "multimodal_cfg"):
        own = accepted.get(part) or {}
        assert set(own.get("tokenizer_kwargs") or ()) <= set(TOKENIZER)
        assert set(own.get("act_kwargs") or ()) | set(own.get("norm_kwargs") or ()) <= set(KWARGS)


def _loaded(folder: Path, whole: dict[str, torch.Tensor], rng: Random) -> None:
    """Weights with one tensor changed: what is loaded must equal what was written, and be finite."""
    file = folder / "open_clip_model.safetensors"
    weights = {name: tensor.clone() for name, tensor in whole.items()}
    name = rng.choice(
        sorted(name for name, each in weights.items() if each.dim() and each.is_floating_point())
    )
    changes = {
        "nothing": weights[name],
        "int32": weights[name].int(),
        "complex": weights[name].to(torch.complex64),
        "half": weights[name].half(),
        "NaN": weights[name].index_fill(0, torch.tensor([0]), float("nan")),
        "infinity": weights[name].index_fill(0, torch.tensor([0]), float("inf")),
        "other shape": weights[name][:0],
        "another rank": weights[name][None],
        "bool": weights[name].bool(),
    }
    kind = rng.choice([*changes, "missing", "added", "cut", "header"])
    weights[name] = changes.get(kind, weights[name]).contiguous()
    if kind == "missing":
        del weights[name]
    if kind == "added":
        weights["evil"] = torch.zeros(2)
    save_file(weights, file)
    content = file.read_bytes()
    if kind == "cut":
        file.write_bytes(content[: rng.randrange(len(content))])
    if kind == "header":
        file.write_bytes(struct.pack("<Q", rng.choice((0, 1, 2**63, len(content)))) + content[8:])
    loaded = load(str(folder)).clip.state_dict()
    assert kind in ("nothing", "half"), f"{kind} in {name} was accepted"
    assert all(torch.isfinite(each).all() for each in loaded.values() if each.is_floating_point())
    assert torch.equal(loaded[name], weights[name].float()), f"{name} was loaded as something else"


def _tokenizer(folder: Path, config: dict[str, Any], rng: Random) -> None:
    """A tokenizer that maps to the Python file; whoever answers yes to every question has not asked for it to run."""
    changed = copy.deepcopy(config)
    changed["model_cfg"]["text_cfg"]["hf_tokenizer_name"] = rng.choice((str(folder), "x"))
    (folder / "open_clip_config.json").write_text(json.dumps(changed))
    mapping = rng.choice(("evil.Evil", [None, "evil.Evil"], ["evil.Evil", None]))
    (folder / "tokenizer_config.json").write_text(json.dumps({"auto_map": {"AutoTokenizer": mapping}}))
    load(str(folder))
    raise AssertionError("a tokenizer of a stranger was accepted")
