"""What data, weights and settings of strangers cannot do, read from the source and tried on hostile files."""

from __future__ import annotations

import ast
import io
import os
import re
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tracer
from studies.toy.mnist import find_mnist
from tracer.core.errors import UserError
from tracer.data.formats import idx
from tracer.data.sources import load as load_data

ROOT = Path(tracer.__file__).parent
TREES = {str(path.relative_to(ROOT)): ast.parse(path.read_text()) for path in sorted(ROOT.rglob("*.py"))}

# Functions that run code, or unpack what can: none of them has a place here.
FORBIDDEN = {
    *("eval", "exec", "compile", "__import__", "os.system", "os.popen", "os.execv", "os.execvp"),
    *("torch.load", "torch.jit.load", "pickle.load", "pickle.loads", "pickle.Unpickler", "dill.loads"),
    *(
        "joblib.load",
        "marshal.loads",
        "shelve.open",
        "yaml.load",
        "yaml.unsafe_load",
        "tarfile.TarFile.extractall",
    ),
    *(
        "pandas.read_pickle",
        "pd.read_pickle",
        "numpy.fromfile",
        "torch.hub.load",
        "xml.etree.ElementTree.parse",
    ),
}


def calls() -> Iterator[tuple[str, str, ast.Call]]:
    """Every call in the package: the file, the function as written, and the node."""
    for name, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                yield name, ast.unparse(node.func), node


def keywords(call: ast.Call) -> dict[str, str]:
    return {word.arg: ast.unparse(word.value) for word in call.keywords if word.arg}


def test_nothing_evaluates_unpickles_or_extracts() -> None:
    used = [(name, function) for name, function, _ in calls() if function in FORBIDDEN]
    assert used == []
    assert [name for name, function, _ in calls() if function.endswith((".extractall", ".extract"))] == []


def test_no_shell_reads_what_somebody_typed() -> None:
    for name, function, call in calls():
        if function.startswith("subprocess."):
            assert keywords(call).get("shell", "False") == "False", name
            assert not [each for each in call.args if isinstance(each, ast.JoinedStr | ast.Constant)], name


def test_readers_that_could_unpickle_are_told_not_to() -> None:
    numpy = [(name, keywords(call)) for name, function, call in calls() if function == "np.load"]
    assert numpy
    assert all(told.get("allow_pickle") == "False" for _, told in numpy), numpy
    models = [keywords(call) for _, function, call in calls() if function == "open_clip.create_model"]
    assert models
    assert all(told.get("weights_only") == "True" for told in models)


def test_no_code_of_a_data_set_or_model_is_trusted() -> None:
    for name, tree in TREES.items():
        told = [word for node in ast.walk(tree) if isinstance(node, ast.Call) for word in node.keywords]
        trusted = [ast.unparse(word.value) for word in told if word.arg == "trust_remote_code"]
        assert set(trusted) <= {"False"}, name


def test_code_is_imported_from_where_the_user_says_and_nowhere_else() -> None:
    """Recipes are Python that the user names; methods, commands and sinks are the package's own."""
    loaders = {name for name, function, _ in calls() if function.endswith(("import_module", "exec_module"))}
    assert loaders <= {
        *("__init__.py", "methods/base.py", "cli/app.py", "sweep/recipe.py"),
        *("runs/sinks/tools.py", "storage/images.py"),  # of one name each
    }, loaders


class Bomb:
    """What a hostile pickle does when it is loaded."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.mark,)


def test_a_pickle_is_not_run_as_data(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    np.savez(tmp_path / "d.npz", images=np.array([Bomb(mark)], dtype=object), labels=np.arange(1))
    with pytest.raises(UserError, match="without pickles"):
        load_data(tmp_path / "d.npz")
    assert not mark.exists()


COMPRESSION = {"tar": "", "tar.gz": "gz", "tgz": "gz", "tbz2": "bz2", "txz": "xz"}


@pytest.mark.parametrize("kind", [*COMPRESSION, "zip"])
@pytest.mark.parametrize("name", ["../out.txt", "/tmp/tracer-out.txt", "a/../../out.txt"])
def test_archives_stay_in_their_folder(tmp_path: Path, kind: str, name: str) -> None:
    archive, inside = tmp_path / f"mnist.{kind}", tmp_path / "deep" / "inside"
    if kind == "zip":
        with zipfile.ZipFile(archive, "w") as file:
            file.writestr(name, "out")
    else:
        with tarfile.open(archive, f"w:{COMPRESSION[kind]}") as file:
            member = tarfile.TarInfo(name)
            member.size = 3
            file.addfile(member, io.BytesIO(b"out"))
    with pytest.raises(UserError):
        find_mnist(archive, inside)
    outside = [path for path in tmp_path.rglob("*") if path.is_file() and path != archive]
    assert all(inside in path.parents for path in outside), outside
    assert not Path("/tmp/tracer-out.txt").exists()


def test_what_is_downloaded_is_read_only_if_its_hash_is_the_pinned_one(tmp_path: Path) -> None:
    """The one thing tracer itself downloads is MNIST; a byte more or less and it is refused."""
    for name, sha256 in idx.FILES["test"]:
        assert len(sha256) == 64
        (tmp_path / name).write_bytes(b"\0\0\x08\x03" + bytes(100))
    with pytest.raises(UserError, match="its SHA-256 is"):
        idx.arrays(tmp_path, "test")


def test_downloads_are_left_to_libraries_that_verify() -> None:
    """No request of our own: torchvision, open_clip and the hub's client fetch, and idx files are checked again."""
    fetching = ("requests", "urllib", "http", "urllib3", "httpx", "wget", "ftplib")
    for name, tree in TREES.items():
        imported = {
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in ([ast.alias(node.module or "")] if isinstance(node, ast.ImportFrom) else node.names)
        }
        assert not [each for each in imported if each.partition(".")[0] in fetching], name


def test_the_report_escapes_unless_it_says_otherwise() -> None:
    """The template engine escapes by default; each exception is markup that our own code has made."""
    engines = [keywords(call) for _, function, call in calls() if function.endswith("Environment")]
    assert engines
    assert all(told.get("autoescape", "False") != "False" for told in engines)
    template = (ROOT / "report" / "page.html.j2").read_text()
    assert "|safe" not in template.replace(" ", "")


HOSTILE = {"trust_remote_code": True}


def exported_config(folder: Path, **changes: object) -> Path:
    """A folder with a tiny model whose config is changed as a stranger might."""
    import json

    from tracer.models.export import export
    from tracer.models.student import load

    export(load("tiny-28"), folder)
    file = folder / "open_clip_config.json"
    config = json.loads(file.read_text())
    for path, value in changes.items():
        place = config
        *parts, last = path.split("__")
        for part in parts:
            place = place.setdefault(part, {})
        place[last] = value
    file.write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        ("model_cfg__text_cfg__tokenizer_kwargs", HOSTILE, "trust_remote_code"),
        ("model_cfg__text_cfg__hf_kwargs", HOSTILE, "hf_kwargs"),
        ("model_cfg__vision_cfg__act_kwargs", {"__class__": "os.system"}, "__class__"),
        ("model_cfg__trust_remote_code", True, "trust_remote_code"),
        ("model_cfg__vision_cfg", "os.system", "vision_cfg is not an object"),
        ("model_cfg__vision_cfg__width", 10**9, "width 1000000000 is out of range"),
        ("model_cfg__vision_cfg__timm_model_name", "hf-hub:a/b", "is not the name of a model of timm"),
        ("model_cfg__vision_cfg__timm_model_name", "local-dir:x", "is not the name of a model of timm"),
        ("preprocess_cfg__mean", ["a", "b", "c"], "mean is three numbers"),
        ("preprocess_cfg__std", [0, 1, 1], "std is more than 0"),
        ("preprocess_cfg__size", 10**6, "size is one or two numbers"),
        ("preprocess_cfg__code", "x", "key in preprocess_cfg"),
    ],
)
def test_only_known_keys_of_a_model_config_reach_open_clip(
    path: str, value: object, problem: str, tmp_path: Path
) -> None:
    from tracer.models.student import load

    folder = exported_config(tmp_path / "model", **{path: value})
    with pytest.raises(UserError, match=problem):
        load(str(folder))
    with pytest.raises(UserError, match=problem):
        tracer.load(folder)


def test_a_python_file_beside_a_model_is_never_run(tmp_path: Path) -> None:
    """The attack of TRUST 3.1: a tokenizer that maps to a Python file in the model's folder."""
    import json

    folder = exported_config(
        tmp_path / "model",
        model_cfg__text_cfg__hf_tokenizer_name=str(tmp_path / "model"),
        model_cfg__text_cfg__tokenizer_kwargs=HOSTILE,
    )
    mark = tmp_path / "ran"
    (folder / "evil.py").write_text(f"open({str(mark)!r}, 'w').close()\nclass Evil: pass\n")
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"auto_map": {"AutoTokenizer": [None, "evil.Evil"]}})
    )
    with pytest.raises(UserError):
        tracer.load(folder)
    assert not mark.exists()


@pytest.mark.parametrize(
    "content", [b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n", b"P7\n332 1 1\n"]
)
def test_formats_that_start_other_programs_are_not_images(
    content: bytes, tmp_path: Path, monkeypatch
) -> None:
    from PIL import EpsImagePlugin, Image

    from tracer.data.encoded import Files
    from tracer.storage.images import measure

    # As if Ghostscript were installed: without it Pillow fails whatever is allowed.
    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", lambda *_, **__: Image.new("RGB", (9, 9)).im)
    (tmp_path / "cat.jpg").write_bytes(content)
    with pytest.raises(UserError, match=r"cat\.jpg cannot be read"):
        Files(tmp_path, ("cat.jpg",))[0]
    with pytest.raises(Image.UnidentifiedImageError):
        measure(content)


def test_every_image_of_a_stranger_is_opened_by_a_list_of_formats() -> None:
    own = {"data/embedded/emoji.py", "evaluation/suites/corruptions.py"}  # made or shipped by this package
    opened = [(name, keywords(node)) for name, function, node in calls() if function == "Image.open"]
    assert opened
    assert [name for name, given in opened if "formats" not in given and name not in own] == []
    assert {name for name, _ in opened} - own == {"storage/images.py", "storage/levels.py"}, (
        "each as it is seen"
    )


def test_weights_of_another_kind_of_number_are_refused() -> None:
    import torch

    from tracer.core.weights import check_fit

    expected = {"w": torch.zeros(2), "count": torch.zeros((), dtype=torch.int64)}
    check_fit(
        {"w": torch.zeros(2, dtype=torch.float16), "count": expected["count"]}, expected, what="x", owner="y"
    )
    for wrong in (torch.zeros(2, dtype=torch.int32), torch.zeros(2, dtype=torch.complex64)):
        with pytest.raises(UserError, match="numbers of type"):
            check_fit({**expected, "w": wrong}, expected, what="x", owner="y")
    with pytest.raises(UserError, match="numbers of type"):
        check_fit({**expected, "count": torch.zeros(())}, expected, what="x", owner="y")


@pytest.mark.parametrize("kind", ["int32", "complex64", "bool"])
def test_a_model_of_another_kind_of_number_is_refused(kind: str, tmp_path: Path) -> None:
    """open_clip itself would round integers into weights, and drop the imaginary part of complex ones."""
    import json

    import torch
    from safetensors.torch import load_file, save_file

    from tracer.models.student import load

    folder = exported_config(tmp_path / "model")
    config = json.loads((folder / "open_clip_config.json").read_text())
    del config["weights_digest"]
    (folder / "open_clip_config.json").write_text(json.dumps(config))
    weights = load_file(folder / "open_clip_model.safetensors")
    weights["visual.proj"] = weights["visual.proj"].to(getattr(torch, kind))
    save_file(weights, folder / "open_clip_model.safetensors")
    with pytest.raises(UserError, match=f"visual.proj holds numbers of type torch.{kind}"):
        load(str(folder))


def test_names_cannot_steer_a_terminal_or_a_script() -> None:
    from tracer.core.errors import printable
    from tracer.sweep.slurm import array_script

    assert printable("a\x1b[31mb\x07\u202ec\nd é") == "a\\x1b[31mb\\x07\\u202ec\nd é"
    assert "\x1b" not in str(UserError("no file \x1b]0;x"))
    for name, folder in (("x\nrm -rf .", "runs"), ("x", "runs\ncurl")):
        with pytest.raises(UserError, match="line break"):
            array_script(name, 2, 1, Path(folder), ["tracer"])
    assert "--job-name='a; b'" in array_script("a; b", 2, 1, Path("r"), ["tracer", "x y"])


def test_a_tokenizer_with_code_is_refused_and_nobody_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without trust_remote_code transformers asks, and runs the file if the answer is y."""
    import json

    folder = exported_config(tmp_path / "model", model_cfg__text_cfg__hf_tokenizer_name="x")
    mark = tmp_path / "ran"
    (folder / "evil.py").write_text(f"open({str(mark)!r}, 'w').close()\nclass Evil: pass\n")
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"auto_map": {"AutoTokenizer": [None, "evil.Evil"]}})
    )
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    with pytest.raises(UserError, match="Python code of its own, which is never run"):
        tracer.load(folder)
    assert not mark.exists()


def test_a_text_tower_with_code_is_refused_and_nobody_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import json

    from tracer.models.source import ModelSource

    mark = tmp_path / "ran"
    (tmp_path / "evil.py").write_text(f"open({str(mark)!r}, 'w').close()\nclass Evil: pass\n")
    (tmp_path / "config.json").write_text(
        json.dumps({"model_type": "evil", "auto_map": {"AutoConfig": "evil.Evil"}})
    )
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    text = {"hf_model_name": str(tmp_path), "hf_tokenizer_name": "x", "width": 8}
    config = {"embed_dim": 8, "vision_cfg": {"layers": 1, "width": 64, "image_size": 16}, "text_cfg": text}
    (tmp_path / "own.json").write_text(json.dumps(config))
    from tracer.models.open_clip_compat import open_clip

    open_clip.add_model_config(tmp_path / "own.json")
    monkeypatch.setattr(ModelSource, "fetch", lambda self: None)
    with pytest.raises(UserError, match="Python code of its own, which is never run"):
        ModelSource("own", None, config).build()
    assert not mark.exists()


def test_a_text_tower_with_compiled_code_is_refused(tmp_path: Path) -> None:
    import json

    from tracer.models.load_guards import check_text_tower

    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 9}
    for attention, match in (("kernels-community/x", "attention 'kernels-community/x'"), ("eager", None)):
        content = {"model_type": "bert", "attn_implementation": attention, **sizes}
        (tmp_path / "config.json").write_text(json.dumps(content))
        if match is None:
            check_text_tower(str(tmp_path))
        else:
            with pytest.raises(UserError, match=match):
                check_text_tower(str(tmp_path))


def test_a_program_is_not_taken_for_weights(tmp_path: Path) -> None:
    import torch

    from tracer.models.registry import locate

    torch.jit.script(torch.nn.Linear(1, 1)).save(str(tmp_path / "x.pt"))
    with pytest.raises(UserError, match="must hold weights and nothing else"):
        locate("ViT-S-32", str(tmp_path / "x.pt")).build()


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"vision_cfg": {"layers": {"a": HOSTILE}}}, "vision_cfg.layers cannot be"),
        ({"text_cfg": {"act_kwargs": {"eps": HOSTILE}}}, "act_kwargs.eps cannot be"),
        ({"embed_dim": HOSTILE}, "embed_dim cannot be"),
        ({"embed_dim": [1, HOSTILE]}, "embed_dim.1 cannot be"),
        ({"vision_cfg": {"layers": 5_000_000}}, "layers 5000000 is out of range"),
        ({"vision_cfg": {"layers": [2, 10_000]}}, "layers.1 10000 is out of range"),
        ({"vision_cfg": {"layers": [1]}}, r"layers \[1\] is a number, or 4 of a ResNet"),
        ({"embed_dim": float("nan")}, "embed_dim nan is out of range"),
        ({"init_logit_scale": float("nan")}, "init_logit_scale nan is out of range"),
        ({"vision_cfg": {"width": -1}}, "width -1 is out of range"),
        ({"text_cfg": {"heads": 0}}, "heads 0 is out of range"),
        ({"vision_cfg": {"image_size": [28, "x"]}}, "image_size.1 'x' is out of range"),
        ({"vision_cfg": {"width": 100_000, "layers": 1000}}, "this machine has"),
        ({"vision_cfg": {"width": 100_000, "layers": [1, 1, 1, 1]}}, "this machine has"),
        ({"text_cfg": {"width": 100_000, "vocab_size": 10_000_000}}, "this machine has"),
    ],
)
def test_values_of_a_config_are_plain_and_within_bounds(config: dict[str, object], problem: str) -> None:
    from tracer.models.config_check import check_model_config

    with pytest.raises(UserError, match=problem):
        check_model_config(config, "x.json")


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"interpolation": "../x"}, "interpolation '../x' is not known"),
        ({"resize_mode": 7}, "resize_mode 7 is not known"),
        ({"resize_mode": ["squash"]}, "resize_mode .* is not known"),
        ({"mode": "CMYK"}, "mode 'CMYK' is not known: it is RGB"),
        ({"fill_color": "x"}, "fill_color is a number"),
        ({"fill_color": -1}, "fill_color is a number"),
        ({"mean": [1, 2]}, "mean is three numbers"),
        ({"mean": [10**400, 0, 0]}, "mean is three numbers"),
        ({"std": [float("nan")] * 3}, "std is"),
    ],
)
def test_values_of_the_preprocessing_are_those_that_open_clip_takes(
    config: dict[str, object], problem: str
) -> None:
    from tracer.models.config_check import check_preprocess_config

    with pytest.raises(UserError, match=problem):
        check_preprocess_config(config, "x.json")


def test_a_config_nested_too_deeply_is_a_sentence(tmp_path: Path) -> None:
    from tracer.models.registry import locate

    (tmp_path / "deep.json").write_text('{"embed_dim":' + "[" * 100_000)
    with pytest.raises(UserError, match=r"deep\.json is not a readable config"):
        locate(str(tmp_path / "deep.json"))


@pytest.mark.parametrize("name", [".lock", "log.jsonl", "weights", "resume"])
def test_a_run_of_a_stranger_is_not_written_through_its_links(tmp_path: Path, name: str) -> None:
    from tracer.runs.run import Run

    outside = tmp_path / "outside"
    outside.write_text("precious")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / name).symlink_to(outside)
    with pytest.raises(UserError, match="is a link"), Run(tmp_path / "run").locked():
        pass
    assert outside.read_text() == "precious"


@pytest.mark.parametrize(
    "name", ["predictions", "predictions/result", "export", "weights/wise-0.5.safetensors"]
)
def test_scores_exports_and_merges_do_not_go_through_links_either(tmp_path: Path, name: str) -> None:
    from tracer.evaluation.target import target
    from tracer.runs.run import Run

    (tmp_path / "run").mkdir()
    run, link = Run(tmp_path / "run"), tmp_path / "run" / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(tmp_path)
    (tmp_path / "run" / "experiment.json").write_text('{"id": "1", "experiment": {}, "classes": []}')
    with pytest.raises(UserError, match="is a link"):
        target(run, "result", "x")
    with pytest.raises(UserError, match="is a link"):
        run.keep("wise-0.5", {})
    with pytest.raises(UserError, match="is a link"):
        tracer.export(run)
    with pytest.raises(UserError, match="is a link"):
        tracer.merge(run, wise=0.5)


@pytest.mark.parametrize("name", ["result.json", "log.jsonl", "weights/result.safetensors"])
def test_a_pipe_in_a_run_of_a_stranger_is_not_waited_for(tmp_path: Path, name: str) -> None:
    from tracer.report.run_data import read_run
    from tracer.runs.run import Run

    (tmp_path / "weights").mkdir()
    (tmp_path / "experiment.json").write_text('{"id": "1", "experiment": {}, "classes": []}')
    Run.open(tmp_path)
    os.mkfifo(tmp_path / name)
    for read in (Run.open, read_run):
        with pytest.raises(UserError, match="is no file"):
            read(tmp_path)


def test_a_lock_neither_follows_a_link_nor_empties_a_file(tmp_path: Path) -> None:
    from tracer.storage.lock import lock

    (tmp_path / "file").write_text("precious")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with pytest.raises(OSError, match="link"), lock(tmp_path / "link"):
        pass
    with lock(tmp_path / "file") as held:
        assert held
    assert (tmp_path / "file").read_text() == "precious"


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracer.data.formats.arrays.UNPACKED", 1 << 20)
    np.savez_compressed(
        tmp_path / "d.npz", images=np.zeros((1000, 64, 64, 3), np.uint8), labels=np.arange(1000)
    )
    with pytest.raises(UserError, match="refused as a zip bomb"):
        load_data(tmp_path / "d.npz")


def test_rows_without_room_for_them_are_not_read(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    same = pa.DictionaryArray.from_arrays(pa.array(np.zeros(100_000, np.int8)), pa.array(["a.png"]))
    pq.write_table(pa.table({"image": same, "label": same}), tmp_path / "d.parquet")
    with pytest.raises(UserError, match="100000 rows in"):
        load_data(tmp_path / "d.parquet")


def test_class_names_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    from tracer.api.terminal import _Printable, show_table

    name = "cat\x1b]0;x\x07\u202e[red]"
    show_table(name, ("class", name), [(name, "1")])
    console = _Printable(width=200)
    console.print(name, markup=False)
    printed = capsys.readouterr().out
    assert not [each for each in printed if not each.isprintable() and each != "\n"]
    assert "[red]" in printed


def test_each_promise_names_a_test_that_is_there() -> None:
    page = (ROOT.parent / "docs" / "security.md").read_text(encoding="utf-8")
    rows = page.partition("## What is promised")[2].partition("\n\nNothing")[0].strip().splitlines()[2:]
    assert rows
    for row in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row)
        assert named, row
        for file, name in named:
            assert f"def {name}(" in (ROOT.parent / file).read_text(encoding="utf-8")


def test_every_server_of_the_repository_is_the_local_page() -> None:
    """Whoever serves something more goes through the same rules, and is tried in tests/report/test_local_page.py."""
    kinds = (
        "launch",
        "run_app",
        "serve_forever",
        "HTTPServer",
        "ThreadingHTTPServer",
        "create_server",
        "start_server",
    )
    trees = dict(TREES)
    for folder in ("examples", "studies"):
        for path in (ROOT.parent / folder).rglob("*.py"):
            trees[str(path)] = ast.parse(path.read_text(encoding="utf-8"))
    servers = [
        (name, keywords(node).get("app_kwargs", ""), keywords(node).get("server_name"))
        for name, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in kinds
        if ast.unparse(node.func) != "launch"  # our own: what a launcher of processes says
    ]
    assert servers == [("report/interactive/page.py", "{'middleware': [Middleware(Local)]}", "ADDRESS")]
