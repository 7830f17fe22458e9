"""Parsers of tables, settings, runs, logs, checkpoints, weights, idx files, sweeps and flags, under hypothesis."""

from __future__ import annotations

import gzip
import io
import json
import math
import shutil
import struct
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from PIL import Image

from faults.site import STEPS, Site
from faults.verdict import Verdict, lost, refused, survived
from tracer.checkpoint import latest
from tracer.data.check import validate
from tracer.data.classes import classes
from tracer.data.idx import FILES, arrays
from tracer.data.prompts import templates
from tracer.data.sources import load
from tracer.errors import UserError
from tracer.experiment import Experiment
from tracer.merge.wise import alphas
from tracer.method import method, methods
from tracer.record import Recorder, read
from tracer.report.account import read_account
from tracer.run import Run
from tracer.sweep import Sweep
from tracer.sweep.crew import standing
from tracer.tensors import read_weights, write_weights
from tracer.tether import tether
from tracer.zoo import locate

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


class Parser(NamedTuple):
    """Something that reads what others wrote: what it is given, and what must hold if it accepts it."""

    name: str
    inputs: st.SearchStrategy[Any]
    probe: Callable[[Any], None]  # raises UserError to refuse, AssertionError where an answer is wrong
    tries: tuple[int, int] = (30, 1000)


def trials(site: Site) -> Iterator[Verdict]:
    """A UserError or the right answer: never another exception, never silently wrong data."""
    folder = site.fresh("parsers")
    folder.mkdir()
    for parser in _parsers(site, folder):
        yield from _fuzzed(parser, site.some(*parser.tries), site.rng.randrange(1 << 30))


def _fuzzed(parser: Parser, tries: int, luck: int) -> Iterator[Verdict]:
    verdicts: list[Verdict] = []

    def probe(value: Any) -> None:
        try:
            parser.probe(value)
        except UserError as error:
            wordless = not str(error).strip()
            verdicts.append(lost(parser.name, "refused without a word") if wordless else refused(parser.name))
            return
        verdicts.append(survived(parser.name))

    quietly = settings(
        max_examples=tries,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
    try:
        seed(luck)(quietly(given(parser.inputs)(probe)))()
    except Exception as error:  # noqa: BLE001  (the very thing that is looked for)
        notes = " ".join(getattr(error, "__notes__", []))
        verdicts.append(lost(parser.name, f"{type(error).__name__}: {error} {notes}"[:1500]))
    yield from verdicts


def _parsers(site: Site, folder: Path) -> Iterator[Parser]:
    run = site.copy(site.run, "fuzzed")
    described = json.loads((run / "experiment.json").read_text())
    yield from _table_parsers(folder)
    yield Parser("settings", _mutated(described["experiment"]), _settings)
    yield Parser("options of a method", st.tuples(st.sampled_from(sorted(methods())), _options()), _method)
    yield Parser("a run's description", _texts_like(described), partial(_run, run), (30, 600))
    yield Parser("log.jsonl", _lines(run / "log.jsonl"), partial(_log, folder / "log.jsonl"))
    yield Parser("a sweep's state", st.tuples(_files(), _files()), partial(_sweep, folder / "sweep"))
    weights = {"a": torch.arange(12.0).view(3, 4), "b": torch.zeros(0, 2), "c": torch.tensor(3)}
    write_weights(folder / "w.safetensors", weights)
    whole = (folder / "w.safetensors").read_bytes()
    yield Parser("a safetensors header", _headers(), partial(_weights, folder / "w.safetensors", None))
    yield Parser("sealed weights", _damaged(whole), partial(_weights, folder / "w.safetensors", weights))
    manifest = next((site.stopped / "resume").glob(f"step-{STEPS - 2:09d}/manifest.json"))
    resume = folder / "resume" / manifest.parent.name
    shutil.copytree(manifest.parent, resume)
    yield Parser(
        "a checkpoint's manifest",
        _texts_like(json.loads(manifest.read_text())),
        partial(_manifest, resume),
        (20, 300),
    )
    yield Parser("idx files", st.tuples(st.booleans(), st.binary(max_size=60)), partial(_idx, folder / "idx"))
    yield Parser(
        "a NumPy archive", _damaged(_npz()) | st.binary(max_size=80), partial(_npz_file, folder / "t.npz")
    )
    yield Parser("a model's config", _texts_like(_export_config(site)), partial(_config, folder / "model"))
    yield Parser("class names", json_values.map(json.dumps) | st.text(max_size=30), partial(_classes, folder))
    yield Parser("templates", st.text(alphabet="a {}\n", max_size=20), partial(_templates, folder / "t.txt"))
    marks = st.text(alphabet="0123456789.:-+einfa ", max_size=12)
    yield Parser("--wise", marks, _alphas)
    yield Parser(
        "--tether",
        marks | marks.map(lambda text: f"l2sp:{text}") | st.text(max_size=8),
        lambda text: _tether(text),
    )


# What is put in


def _mutated(value: dict[str, Any]) -> st.SearchStrategy[Any]:
    """A right object with some entries replaced, taken away or added; or anything."""
    names = st.sampled_from(sorted(value)) | st.text(max_size=6)
    changes = st.dictionaries(names, json_values, max_size=3)
    without = st.sets(st.sampled_from(sorted(value)), max_size=2)
    likely = st.builds(lambda c, w: {k: v for k, v in {**value, **c}.items() if k not in w}, changes, without)
    return likely | json_values


def _texts_like(value: dict[str, Any]) -> st.SearchStrategy[bytes]:
    """Bytes of such an object, damaged ones, and any others."""
    written = _mutated(value).map(lambda each: json.dumps(each).encode())
    return written | _damaged(json.dumps(value, indent=1).encode()) | st.binary(max_size=40)


def _damaged(content: bytes) -> st.SearchStrategy[bytes]:
    """One byte changed, or an end cut off."""
    places = st.integers(0, len(content) - 1)

    def change(place: int, bits: int) -> bytes:
        return content[:place] + bytes([content[place] ^ bits]) + content[place + 1 :]

    return st.builds(change, places, st.integers(0, 255)) | places.map(lambda place: content[:place])


def _options() -> st.SearchStrategy[dict[str, Any]]:
    known = sorted({name for recipe in methods().values() for name in recipe.__kwdefaults__ or {}})
    return st.dictionaries(st.sampled_from(known), json_values, max_size=2)


def _lines(log: Path) -> st.SearchStrategy[bytes]:
    whole = log.read_bytes()
    return _damaged(whole) | st.lists(json_values.map(json.dumps), max_size=5).map(
        lambda x: "\n".join(x).encode()
    )


def _files() -> st.SearchStrategy[bytes | None]:
    return (
        st.none()
        | st.binary(max_size=20)
        | _mutated({"steps": 4, "step": 2}).map(lambda x: json.dumps(x).encode())
    )


def _headers() -> st.SearchStrategy[bytes]:
    kinds = st.sampled_from(["F32", "I64", "BF16", "BOOL", "F99"]) | json_values
    numbers = st.integers(-2, 40) | st.integers()
    entry = st.fixed_dictionaries(
        {
            "dtype": kinds,
            "shape": st.lists(numbers, max_size=3),
            "data_offsets": st.lists(numbers, max_size=3),
        }
    )
    header = st.dictionaries(st.text(max_size=4), entry | json_values, max_size=3)
    body = st.binary(max_size=48)

    def file(value: Any, size: int | None, data: bytes) -> bytes:
        text = json.dumps(value).encode()
        return struct.pack("<Q", len(text) if size is None else size % 2**64) + text + data

    return st.builds(file, header, st.none() | st.integers(), body) | body


def _npz() -> bytes:
    file = io.BytesIO()
    np.savez(file, images=np.zeros((2, 4, 4, 3), np.uint8), labels=np.arange(2))
    return file.getvalue()


def _export_config(site: Site) -> dict[str, Any]:
    return {
        "model_cfg": json.loads(site.model.read_text()),
        "preprocess_cfg": {"size": 28},
        "weights_digest": "0",
    }


# What must hold


def _table_parsers(folder: Path) -> Iterator[Parser]:
    Image.new("RGB", (4, 4)).save(folder / "a.png")
    cells = st.sampled_from(["a.png", "image", "caption", "label", "x", "", '"', "split", "train"]) | st.text(
        max_size=4
    )
    rows = st.lists(st.lists(cells, min_size=1, max_size=4), max_size=4)
    separated = st.builds(
        lambda mark, r: "\n".join(mark.join(each) for each in r), st.sampled_from(",;\t|"), rows
    )
    right = separated.map(lambda text: f"image,label\na.png,{text}")
    yield Parser(
        "CSV", (separated | right).map(_bytes) | st.binary(max_size=40), partial(_table, folder / "t.csv")
    )
    likely = st.fixed_dictionaries({"image": st.just("a.png") | json_values, "label": json_values})
    records = st.lists(likely | json_values, max_size=3)
    lines = records.map(lambda found: "\n".join(map(json.dumps, found)).encode())
    yield Parser("JSON lines", lines | st.binary(max_size=40), partial(_table, folder / "t.jsonl"))
    yield Parser(
        "JSON", records.map(lambda found: json.dumps(found).encode()), partial(_table, folder / "t.json")
    )


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _table(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    found = load(path)
    validate(found)
    assert len(found) > 0
    assert len(found.fingerprint) == 16
    assert all(found.captions) or not found.captioned
    assert not found.labelled or ((found.labels >= 0) & (found.labels < len(found.classes))).all()


def _settings(value: Any) -> None:
    made = Experiment.from_json(value)
    again = made.to_json()
    assert {name: again[name] for name in value} == {
        **value,
        **({"retain": again["retain"]} if "retain" in value else {}),
    }
    assert Experiment.from_json(json.loads(json.dumps(again))).id == made.id
    assert math.isfinite(made.lr)


def _method(asked: tuple[str, dict[str, Any]]) -> None:
    name, options = asked
    method(name, **options)


def _run(run: Path, content: bytes) -> None:
    (run / "experiment.json").write_bytes(content)
    try:
        account = read_account(run)
        assert account.step >= 0
        assert isinstance(account.title, str)
    except ValueError:
        pass  # its way to say that there is nothing to tell
    opened = Run.open(run)
    assert isinstance(opened.experiment, Experiment)


def _log(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    before = [entry for entry in read(path) if entry["step"] <= 4]
    Recorder(path).rewind(4)
    assert json.dumps(list(read(path))) == json.dumps(before)
    Recorder(path).log(5, "train", loss=1.0)
    assert list(read(path))[-1] == {"step": 5, "kind": "train", "loss": 1.0}


def _sweep(folder: Path, files: tuple[bytes | None, bytes | None]) -> None:
    sweep = Sweep((Experiment(data="digits"),))
    (place,) = sweep.placed(folder)
    place.mkdir(parents=True, exist_ok=True)
    for name, content in zip(("experiment.json", "log.jsonl"), files, strict=True):
        (place / name).unlink(missing_ok=True)
        if content is not None:
            (place / name).write_bytes(content)
    assert 0 <= standing(sweep, folder).share <= 1


def _weights(path: Path, original: dict[str, torch.Tensor] | None, content: bytes) -> None:
    path.write_bytes(content)
    found = read_weights(path)
    if original is not None:
        assert found.keys() == original.keys()
        assert all(found[name].equal(original[name]) for name in original), "silently wrong"


def _manifest(place: Path, content: bytes) -> None:
    whole = (place / "manifest.json").read_bytes()
    try:
        (place / "manifest.json").write_bytes(content)
        found = latest(place.parent)
        assert found is not None
        assert found[0] == STEPS - 2
        assert found[1].counters["stage_step"] == STEPS - 2
    finally:
        (place / "manifest.json").write_bytes(whole)


def _idx(folder: Path, given_: tuple[bool, bytes]) -> None:
    packed, content = given_
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, _ in FILES["test"]:
        (folder / f"{name}.gz").write_bytes(gzip.compress(content) if packed else content)
    arrays(folder, "test")
    raise AssertionError("only MNIST is MNIST")


def _npz_file(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    found = load(path)
    assert len(found) == 2
    assert np.asarray(found.images[0]).shape == (4, 4, 3)


def _config(folder: Path, content: bytes) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "open_clip_config.json").write_bytes(content)
    assert isinstance(locate(str(folder)).config, dict)


def _classes(folder: Path, text: str) -> None:
    for name in ("names.json", "names.txt"):
        (folder / name).write_bytes(_bytes(text))
        found = classes(["0", "1"], folder / name)
        assert all(isinstance(each, str) and each.strip() for each in found.names)


def _templates(path: Path, text: str) -> None:
    path.write_text(text)
    assert all(each.count("{}") == 1 for each in templates(path))


def _alphas(text: str) -> None:
    found = alphas(text)
    assert found
    assert all(0 <= alpha <= 1 for alpha in found)


def _tether(text: str) -> None:
    assert tether(text) is not None
