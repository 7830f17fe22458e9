"""The shape of the package, read from its source: who may import whom, and what may happen where."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import tracer

ROOT = Path(tracer.__file__).parent
TREES = {
    ".".join(("tracer", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__"): ast.parse(
        path.read_text(encoding="utf-8")
    )
    for path in sorted(ROOT.rglob("*.py"))
}
FILES = {path.relative_to(ROOT).as_posix(): path for path in sorted(ROOT.rglob("*.py"))}

# The pure core: each part, and the other parts of the package that it may know.
PURE = {
    "errors": set(),
    "batch": set(),
    "kernels": {"errors"},
    "weights": {"errors"},
    "objective": {"batch"},
    "teachers": {"errors", "kernels", "weights"},
    "terms": {"batch", "errors", "objective"},
    "metrics": {"errors"},
    "dynamics": {"batch", "terms"},
    "theory": {"errors", "kernels", "teachers"},
}
SHOWN = {"tracer.theory.figures", "tracer.theory.study"}  # theory's edge, where curves become files
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
    "tyro",
    "datasets",
    "webdataset",
}
SCREEN = ("tracer.cli", "tracer.console", "tracer.commands", "tracer.__main__")


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


def test_the_pure_core_is_where_it_is_looked_for() -> None:
    assert {f"tracer.{part}" for part in PURE} <= TREES.keys()
    assert TREES.keys() >= SHOWN


@pytest.mark.parametrize("part", PURE)
def test_the_pure_core_knows_only_itself(part: str) -> None:
    for module, tree in TREES.items():
        if not within(module, f"tracer.{part}") or module in SHOWN:
            continue
        for imported in imports(tree):
            allowed = [f"tracer.{name}" for name in PURE[part] | {part}]
            own = imported.partition(".")[0] == "tracer"
            assert not own or within(imported, *allowed), f"{module} imports {imported}"
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
        assert not [name for name in imports(tree) if within(name, "rich", "tyro")], module


def test_nothing_below_imports_the_command() -> None:
    for module, tree in TREES.items():
        if not within(module, *SCREEN):
            assert not [name for name in imports(tree) if within(name, *SCREEN)], module


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
        allowed = {"Exception"} if module == "tracer.sinks.mirror" else set()
        assert (kinds - allowed).isdisjoint({"everything", "Exception", "BaseException"}), module
        assert "hasattr" not in calls(tree), f"{module} dispatches on hasattr"


@pytest.mark.parametrize("name", FILES)
def test_a_file_fits_a_few_screens(name: str) -> None:
    lines = len(FILES[name].read_text(encoding="utf-8").splitlines())
    assert lines <= (80 if name.startswith("methods/") else 300)


def public(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node


def test_everything_public_explains_itself() -> None:
    """Modules, classes and functions; a command's `main` is told by the function inside, a claim by its theorem."""
    silent = [module for module, tree in TREES.items() if not ast.get_docstring(tree)]
    for module, tree in TREES.items():
        if within(module, "tracer.theory.claims"):
            continue
        told = {"main"} if within(module, "tracer.commands") else set()
        nodes = [node for node in public(tree) if node.name not in told]
        silent += [f"{module}.{node.name}" for node in nodes if not ast.get_docstring(node)]
    assert silent == []


def test_nothing_needs_what_lies_beside_the_project() -> None:
    for name, path in FILES.items():
        text = path.read_text(encoding="utf-8")
        assert "../shared" not in text, name
