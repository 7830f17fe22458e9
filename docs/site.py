"""What the site has beyond the pages of docs/: the files of the root, and a reference of every public name.

mkdocs calls the functions that begin with `on_`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import tracer  # noqa: E402  (the clone's, whatever is installed)

PAGES = {"index.md": "README.md", "contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
GROUPS = {
    "The verbs": ("finetune", "evaluate", "merge", "export", "load"),
    "Runs": ("Run", "Scores", "Experiment", "run", "Training", "Report"),
    "Teachers": ("Shadow", "WMA", "EMA", "Frozen", "Beta", "Teacher", "Mass"),
    "Losses": ("Objective", "Term", "Loss", "Scene", "Batch", "Embedding"),
    "Errors": ("UserError",),
}
OTHERS = "Other names"  # public names that no group has yet


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that do not lie in docs/."""
    for page, source in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8").replace("](docs/", "](")
        for name, other in PAGES.items():
            text = text.replace(f"]({other})", f"]({name})")
        files.append(File.generated(config, page, content=text))
    files.append(File.generated(config, "reference.md", content=reference()))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links into the source tree, which the site does not have, become the path."""
    return re.sub(
        r"\[([^\]]*)\]\((?:\.\./)*((?:studies|tracer|tests|examples)/[^)]*|notebooks|docs|LICENSE|NOTICE|SECURITY.md|CODE_OF_CONDUCT.md)\)",
        _path,
        markdown,
    )


def _path(link: re.Match[str]) -> str:
    text, path = link.groups()
    return f"`{path}`" if text.strip("`") == path else f"{text} (`{path}`)"


def reference() -> str:
    """A page with the docstring of every public name, by group."""
    grouped = {name for names in GROUPS.values() for name in names}
    rest = tuple(name for name in tracer.__all__ if name in tracer._PLACES and name not in grouped)
    lines = [
        "# API reference",
        "",
        "What `import tracer` gives; everything else may change without notice.",
        "",
    ]
    for title, names in {**GROUPS, **({OTHERS: rest} if rest else {})}.items():
        lines += [f"## {title}", ""]
        for name in names:
            lines += [f"::: {tracer._PLACES[name]}.{name}", ""]
    lines += ["## Modules", ""]
    for name, module in tracer._MODULES.items():
        lines += [f"### tracer.{name}", "", f"::: {module}", "    options:"]
        lines += ["      show_root_heading: false", "      heading_level: 4", ""]
    return "\n".join(lines)
