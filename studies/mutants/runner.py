"""Apply mutants one at a time to a copy of the repository, and run the tests that must notice them."""

from __future__ import annotations

import os
import shutil
import sys
import time
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import pytest

from studies.mutants.mutants import Mutant

ROOT = Path(__file__).parents[2]
PARTS = ("tracer", "tests", "studies", "docs", "conftest.py", "pyproject.toml", "README.md")
CAUGHT, SURVIVED = 1, 0  # exit codes of pytest
QUIET = (
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",
)  # of libraries that the parent has imported already
OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "--tb=line", *QUIET)


class Outcome(NamedTuple):
    """What became of a mutant: caught, survived, or an error such as a test that does not exist."""

    mutant: Mutant
    outcome: str
    seconds: float
    tail: str  # the end of pytest's output, which names the test that failed


def copy_of_repository(folder: Path) -> Path:
    """A copy of the parts of the repository that tests read."""
    for part in PARTS:
        source = ROOT / part
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, folder / part, ignore=ignore) if source.is_dir() else shutil.copy(
            source, folder
        )
    return folder


def try_mutant(mutant: Mutant, copy: Path) -> Outcome:
    """Run the tests of a mutant on the copy with the mutant applied; the copy is restored afterwards."""
    path = copy / mutant.file
    whole, started = path.read_text(), time.monotonic()
    path.write_text(mutant.apply(whole))
    try:
        code, output = run_tests(mutant.tests, copy)
    finally:
        path.write_text(whole)
    outcome = {CAUGHT: "caught", SURVIVED: "survived"}.get(code, f"error: pytest exited with {code}")
    return Outcome(mutant, outcome, round(time.monotonic() - started, 1), output.strip()[-600:])


def run_tests(tests: Iterable[str], copy: Path, options: Sequence[str] = OPTIONS) -> tuple[int, str]:
    """The exit code and output of pytest in a forked process, which saves importing torch for each mutant."""
    output = copy / "output.txt"
    output.write_text("")
    child = os.fork()
    if child == 0:
        _run_child([*options, *tests], copy, output)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code, output.read_text(errors="replace")


def _run_child(arguments: list[str], copy: Path, output: Path) -> NoReturn:  # pyrefly: ignore[bad-return]
    code: Any = 70
    try:
        descriptor = os.open(output, os.O_WRONLY | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(descriptor, stream)
        for name in [name for name in sys.modules if name.partition(".")[0] in ("tracer", "studies")]:
            del sys.modules[name]
        sys.path[:] = [str(copy), *(path for path in sys.path if path not in ("", str(ROOT)))]
        sys.dont_write_bytecode = True  # two versions of a file may have one size and one time
        os.environ |= {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
        os.chdir(copy)
        code = pytest.main(arguments)
    except BaseException:  # noqa: BLE001  (the child must end here, whatever was raised)
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(int(code))
