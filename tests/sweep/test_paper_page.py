"""docs/paper.md: every item of the paper has code, a test and a verdict, and all names exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
ITEMS = 75


@cache
def defined(file: Path) -> set[str]:
    """Names that a module defines at its top level."""
    names = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
        names |= {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    return names


def items() -> list[list[str]]:
    lines = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8").splitlines()
    rows = [
        [cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line.startswith("| ")
    ]
    return [row for row in rows if row[0].isdecimal()]


def test_every_item_is_counted_and_whole() -> None:
    rows = items()
    assert [int(row[0]) for row in rows] == list(range(1, ITEMS + 1))
    assert all(len(row) == 5 and all(row) for row in rows)
    assert f"{ITEMS} items" in (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    assert len({row[1] for row in rows}) == ITEMS


def test_every_name_of_code_exists() -> None:
    for _, item, code, *_ in items():
        module, name = code.strip("`").split(":")
        file = ROOT / f"{module.replace('.', '/')}.py"
        assert file.is_file(), (item, code)
        assert name in defined(file), (item, code)


def test_every_test_exists() -> None:
    for _, item, _, test, _ in items():
        file, name = test.strip("`").split("::")
        assert name in defined(ROOT / file), (item, test)


def test_verdicts_on_emojishift_are_those_of_the_evidence() -> None:
    """Items 1, 2, 7 and 8 repeat what docs/evidence.md has from the result files."""
    evidence, studies = (
        (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
        for name in ("evidence", "evidence-studies")
    )
    both, main = (
        next(part for part in page.split("\n## ") if part.startswith(name))
        for page, name in ((evidence, "Both benchmarks"), (studies, "Study: main"))
    )
    verdicts = dict(re.findall(r"^\| ([^|]+) \| \*([^*|]+)\* \|", both, re.MULTILINE))
    shifts = dict(re.findall(r"^\| ([^|]+) \| [^|]+ \| ([\d.]+) \[", main, re.MULTILINE))
    pages = {int(number): verdict for number, *_, verdict in items()}
    assert f"OOD {shifts['direct FT']} against {shifts['zero-shot']} %" in pages[1]
    for item, claim, verdict, words in [
        (2, "Self-distillation forgets less than direct finetuning", "holds", "holds on EmojiShift"),
        (2, "TRACER and a static teacher forget less than L2-SP", "holds", "holds on EmojiShift"),
        (7, "TRACER improves OOD accuracy over FLYP and CaRot", "holds partly", "over CaRot not clearly"),
        (7, "TRACER improves OOD calibration over FLYP and CaRot", "not seen here", "calibration: not seen"),
        (8, "A WMA teacher is better than a static one", "not seen here", "not seen on EmojiShift"),
    ]:
        assert [v for name, v in verdicts.items() if name.startswith(claim)] == [verdict]
        assert words in pages[item]


def test_every_page_that_is_referred_to_exists() -> None:
    for name in ("paper.md", "reproduce.md"):
        text = (ROOT / "docs" / name).read_text(encoding="utf-8")
        for page in re.findall(r"\]\(([^)#]+)", text):
            assert page.startswith("https://") or (ROOT / "docs" / page).exists(), (name, page)


def test_every_recipe_of_the_reproduction_exists() -> None:
    text = (ROOT / "docs" / "reproduce.md").read_text(encoding="utf-8")
    named = set(re.findall(r"tracer\.recipes\.(\w+):(\w+)", text))
    assert {("paper", "table1_vitb16"), ("ablation", "beta"), ("paper", "dynamics")} <= named
    for module, name in named:
        assert name in defined(ROOT / "tracer" / "recipes" / f"{module}.py"), name
