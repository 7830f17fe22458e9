"""The description of the package on PyPI: README.md with links that lead somewhere from there.

The release workflow of GitHub says which repository and tag it builds; there, links and pictures get that address.
Elsewhere the address is unknown, and links into the repository become their text.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Readme(MetadataHookInterface):
    """Sets `readme`, which pyproject.toml declares as dynamic, and `urls` where the repository is known."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        repository = os.environ.get("GITHUB_REPOSITORY", "")
        tag = os.environ.get("GITHUB_REF_NAME", "main")
        metadata["readme"] = {"content-type": "text/markdown", "text": described(text, repository, tag)}
        metadata["urls"] = {"Repository": f"https://github.com/{repository}"} if repository else {}


def described(text: str, repository: str, tag: str) -> str:
    """README's text with absolute links, or without links into the repository if it is unknown."""
    pictures, links = r"!\[([^\]]*)\]\(([^):]+)\)\n*", r"(?<!!)\[([^\]]*)\]\(([^):]+)\)"
    if not repository:
        return re.sub(links, r"\1", re.sub(pictures, "", text))
    raw = f"https://raw.githubusercontent.com/{repository}/{tag}"
    text = re.sub(
        pictures, rf"![\1]({raw}/\2?sanitize=true)\n\n", text
    )  # so that an SVG is served as a picture
    return re.sub(links, rf"[\1](https://github.com/{repository}/blob/{tag}/\2)", text)
