"""The environment that `make` builds is whole: what a user's own script imports works there."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SITE = Path(sysconfig.get_path("purelib"))


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd="/", capture_output=True, text=True, check=False)


WHOLE = 3  # exit code

# In one process, because torch takes seconds to import: without the .pth files and then, as a start does it, with them.
SCRIPT = f"""
import site, sys
sys.path.append({str(SITE)!r})
try:
    import torchvision
except RuntimeError as error:
    assert "torchvision::nms" in str(error)
else:
    sys.exit({WHOLE})
for name in [name for name in sys.modules if name.startswith("torchvision")]:
    del sys.modules[name]
sys.path.remove({str(SITE)!r})
site.addsitedir({str(SITE)!r})
for name in ("transformers", "wandb"):  # are optional, and importing them takes as long as the rest
    sys.modules[name] = None
import open_clip, torchvision.transforms
print(open_clip.list_models()[0])
"""


def test_open_clip_is_imported_in_a_process_of_its_own() -> None:
    if not (ROOT / ".venv" / "ready").exists():
        pytest.skip("this environment was not built by make")
    done = python("-S", "-c", SCRIPT)
    if done.returncode == WHOLE:
        pytest.skip("torchvision is whole in this environment")
    assert done.returncode == 0, done.stderr
    assert (SITE / "torchvision_compat.py").read_text() == (
        ROOT / "tracer" / "models" / "torchvision_compat.py"
    ).read_text(), "run make"


def test_the_hook_costs_no_import_and_leaves_other_errors_alone() -> None:
    lines = [
        "import sys",
        f"sys.path.insert(0, {str(ROOT)!r})",
        "import tracer.models.torchvision_compat",
        "assert 'torch' not in sys.modules and 'open_clip' not in sys.modules",
        "import importlib.util",
        "assert importlib.util.find_spec('torchvision') is not None",
        "assert importlib.util.find_spec('no_such_package') is None",
    ]
    done = python("-c", "\n".join(lines))
    assert done.returncode == 0, done.stderr


TORCH = """
declared = []

class library:
    class Library:
        def __init__(self, *names): pass
        def define(self, schema): declared.append(schema.partition("(")[0])
"""
TORCHVISION = """
import torch
import torchvision.part
if "nms" not in torch.declared:
    raise RuntimeError("operator torchvision::{operator} does not exist")
"""


@pytest.mark.parametrize(("operator", "cured"), [("nms", True), ("other", False)])
def test_a_script_imports_torchvision_whose_operators_are_missing(
    tmp_path: Path, operator: str, cured: bool
) -> None:
    """With stand-ins for torch and torchvision, so that it is tried also where torchvision is whole."""
    (tmp_path / "torch.py").write_text(TORCH)
    (tmp_path / "torchvision").mkdir()
    (tmp_path / "torchvision" / "__init__.py").write_text(TORCHVISION.format(operator=operator))
    (tmp_path / "torchvision" / "part.py").write_text("")
    cure = ROOT / "tracer" / "models" / "torchvision_compat.py"
    shutil.copy(cure, tmp_path)  # as make does
    script = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import torchvision_compat, torchvision"
    done = python("-I", "-S", "-c", script)
    assert (done.returncode == 0) == cured, done.stderr
    assert cured or "torchvision::other" in done.stderr


def test_no_command_imports_open_clip_before_it_needs_a_model() -> None:
    lines = [
        "import sys",
        f"sys.path.insert(0, {str(ROOT)!r})",
        "from importlib import import_module",
        "from tracer.cli.app import _names",
        "for name in _names():",
        "    import_module(f'tracer.cli.commands.{name}')",
        "slow = {'open_clip', 'timm', 'torchvision', 'transformers', 'torch._dynamo'} & {*sys.modules}",
        "assert not slow, slow",
    ]
    done = python("-c", "\n".join(lines))
    assert done.returncode == 0, done.stderr


def test_no_module_is_left_out_of_the_wheel() -> None:
    """The wheel leaves out what git would ignore; `runs/` once meant tracer/runs too. `make wheel` tries a real one."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("this is not a clone")
    files = "\n".join(str(file.relative_to(ROOT)) for file in (ROOT / "tracer").rglob("*.py"))
    done = subprocess.run(
        [git, "check-ignore", "--no-index", "--stdin"],
        cwd=ROOT,
        input=files,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == ""
