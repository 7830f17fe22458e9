"""The shape of the package, read from its source: who may import whom, and what may happen where."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

import tracer
from tracer.methods.base import methods

ROOT = Path(tracer.__file__).parent
TREES = {
    ".".join(("tracer", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__"): ast.parse(
        path.read_text(encoding="utf-8")
    )
    for path in sorted(ROOT.rglob("*.py"))
}
FILES = {path.relative_to(ROOT).as_posix(): path for path in sorted(ROOT.rglob("*.py"))}

# Lowest first. A module imports from its own layer and from lower ones; `docs/architecture.md` has the same table.
LAYERS = (
    "core",
    "storage",
    "parallel",
    "models",
    "data",
    "measure",
    "methods",
    "runs",
    "evaluation",
    "training",
    "merging",
    "analysis",
    "report",
    "api",
    "integrations",
    "sweep",
    "fitting",
    "recipes",
    "cli",
)
EFFECTS = {
    "os",
    "sys",
    "io",
    "pathlib",
    "shutil",
    "subprocess",
    "logging",
    "socket",
    "tempfile",
    "time",
    "random",
}
EFFECTS |= {
    "open_clip",
    "torchvision",
    "PIL",
    "safetensors",
    "matplotlib",
    "rich",
    "datasets",
    "webdataset",
}
SCREEN = ("tracer.cli", "tracer.api.streams", "tracer.api.terminal", "tracer.__main__")


def within(module: str, *packages: str) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def imports(tree: ast.Module, *, when_loaded: bool = False) -> set[str]:
    """Modules that a module imports: all, or only those it needs at once."""
    found: set[str] = set()
    for node in _now(tree) if when_loaded else ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            base = node.module or ""
            found |= {
                f"{base}.{alias.name}" if f"{base}.{alias.name}" in TREES else base for alias in node.names
            }
    return found


def _now(node: ast.AST) -> Iterator[ast.AST]:
    """Everything but the bodies of functions."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield child
            yield from _now(child)


def calls(tree: ast.Module) -> set[str]:
    return {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}


def names(tree: ast.Module) -> set[str]:
    return {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute | ast.Name)}


def layer(module: str) -> int:
    """The rank of a module's layer; the package itself and `python -m tracer` stand above all."""
    name = [*module.split("."), ""][1]
    return len(LAYERS) if name in ("", "__main__") else LAYERS.index(name)


def climbing(trees: dict[str, ast.Module]) -> list[str]:
    """Imports of a higher layer, wherever in a module they stand."""
    return [
        f"{module} imports {imported}"
        for module, tree in trees.items()
        for imported in sorted(imports(tree))
        if within(imported, "tracer") and imported != "tracer" and layer(imported) > layer(module)
    ]


def test_every_module_imports_from_its_own_layer_or_below() -> None:
    assert climbing(TREES) == []


@pytest.mark.parametrize("name", LAYERS[:-1])
def test_an_import_turned_round_is_found(name: str) -> None:
    module = next(module for module in TREES if within(module, f"tracer.{name}"))
    turned = ast.parse("def later():\n    from tracer.cli.app import main\n    return main")
    assert climbing({module: turned}) == [f"{module} imports tracer.cli.app"]


def test_only_the_package_itself_names_the_package() -> None:
    """`import tracer` below the command line would reach any layer unseen."""
    for module, tree in TREES.items():
        if not within(module, "tracer.cli"):
            assert "tracer" not in imports(tree), module


def test_the_page_shows_the_layers_that_are_enforced() -> None:
    page = (ROOT.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert tuple(re.findall(r"^\| `tracer/(\w+)(?:\.py|/)` ", page, re.MULTILINE)) == LAYERS


def test_the_page_names_what_exists() -> None:
    """The walk of a run and the table of where to change what: every function and every path is there."""
    page = (ROOT.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    walk = re.findall(r"`([\w.]+):([\w.]+)`", page)
    assert len(walk) > 20
    for module, dotted in walk:
        value: object = import_module(f"tracer.{module}")
        for name in dotted.split("."):
            value = getattr(value, name)
    paths = re.findall(r"`(tracer/[\w/.]+)`", page)
    assert [path for path in paths if not (ROOT.parent / path).exists()] == []
    for layer_name, holds in re.findall(r"^\| `tracer/(\w+)/` \| (.*) \|$", page, re.MULTILINE):
        modules = {
            path.stem for path in (ROOT / layer_name).rglob("*") if path.suffix == ".py" or path.is_dir()
        }
        named = {name.strip("/") for name in re.findall(r"`([a-z_]+/?)`", holds)}
        assert named <= modules | {"finetune", "evaluate", "merge", "export", "load"}, layer_name


def test_core_is_free_of_effects() -> None:
    for module, tree in TREES.items():
        if not within(module, "tracer.core"):
            continue
        for imported in imports(tree):
            assert imported.partition(".")[0] not in EFFECTS, f"{module} imports {imported}"
            assert not within(imported, "torch.distributed"), f"{module} imports {imported}"
        assert calls(tree).isdisjoint({"open", "print", "input"}), module


def test_no_module_waits_for_itself() -> None:
    """Imports made when a module is loaded form no circle."""
    graph = {
        module: imports(tree, when_loaded=True) & TREES.keys() - {module} for module, tree in TREES.items()
    }
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


def test_only_parallel_knows_of_processes_and_devices() -> None:
    for module, tree in TREES.items():
        if within(module, "tracer.parallel"):
            continue
        assert not [name for name in imports(tree) if within(name, "torch.distributed")], module
        machine = ("torch.distributed", "torch.cuda", "torch.mps", "torch.backends")
        assert not [name for name in names(tree) if within(name, *machine)], module
        assert not [name for name in calls(tree) if name.endswith((".cuda", ".mps"))], module


def test_only_the_command_speaks() -> None:
    for module, tree in TREES.items():
        if within(module, *SCREEN) or module.endswith(".__main__"):
            continue
        assert not [name for name in calls(tree) if name == "print" or name.endswith(".print")], module
        assert names(tree).isdisjoint({"sys.stdout", "sys.stderr"}), module
        assert not [name for name in imports(tree) if within(name, "rich", "argparse")], module


def test_no_weights_are_pickled() -> None:
    for module, tree in TREES.items():
        used = names(tree) & {
            "torch.load",
            "torch.save",
            "pickle.load",
            "pickle.loads",
            "pickle.dump",
            "pickle.dumps",
        }
        assert not used, f"{module} uses {used}"


def test_nothing_is_caught_blindly_or_guessed() -> None:
    """But for what a stranger's code may raise in a thread beside a run, which goes on whatever that is."""
    for module, tree in TREES.items():
        caught = [node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)]
        kinds = {ast.unparse(node.type) if node.type else "everything" for node in caught}
        allowed = {"BaseException"} if module == "tracer.runs.sinks.forwarding" else set()
        assert (kinds - allowed).isdisjoint({"everything", "Exception", "BaseException"}), module
        assert "hasattr" not in calls(tree), f"{module} dispatches on hasattr"


def test_a_file_is_one_subject() -> None:
    lines = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in FILES.items()}
    assert {name: count for name, count in lines.items() if count > 550} == {}
    recipes = {f"methods/{name}.py" for name in methods()}
    assert {name: lines[name] for name in recipes if lines[name] > 80} == {}


def public(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node


def test_everything_public_explains_itself() -> None:
    """Modules, classes and functions; a command's `main` is told by the function inside."""
    silent = [module for module, tree in TREES.items() if not ast.get_docstring(tree)]
    for module, tree in TREES.items():
        if within(module, "studies.theory.claims"):
            continue
        told = {"main"} if within(module, "tracer.cli.commands") else set()
        nodes = [node for node in public(tree) if node.name not in told]
        silent += [f"{module}.{node.name}" for node in nodes if not ast.get_docstring(node)]
    assert silent == []


def test_nothing_needs_what_lies_beside_the_project() -> None:
    for name, path in FILES.items():
        text = path.read_text(encoding="utf-8")
        assert "../shared" not in text, name
