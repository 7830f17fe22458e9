"""Prompt templates: sentences with a placeholder `{}` for the class name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tracer.core.errors import UserError, unknown
from tracer.models.open_clip_compat import open_clip

PLACEHOLDER = "{}"
PLAIN = {"name": ("{}",), "digit": ("the digit {}",)}
NAMES = ("openai", "paper", "released", "simple", *PLAIN)

# The templates that the code of the TRACER paper uses besides OpenAI's 80, which are all that the paper names.
RELEASED = tuple(
    f"a photo containing a {how} {PLACEHOLDER}"
    for how in ("small", "vague", "distant", "partially visible", "hidden", "faint")
)


def templates(spec: str | Path | Sequence[str] = "openai") -> tuple[str, ...]:
    """Templates by name ("openai", "released", "simple", "name", "digit"), from a file, or from a list.

    A file has one template per line; a string that contains `{}` is the template itself.
    "openai" are the 80 of CLIP (arXiv:2103.00020), "simple" the best 7 of them, both as in open_clip. "paper" is
    another name of "openai"; "released" are 86, these 80 and the six of the TRACER paper's code.
    """
    if not isinstance(spec, str | Path):
        return _checked(spec, "the list of templates")
    if spec in PLAIN:
        return PLAIN[str(spec)]
    if spec in NAMES:
        simple = spec == "simple"
        functions = open_clip.SIMPLE_IMAGENET_TEMPLATES if simple else open_clip.OPENAI_IMAGENET_TEMPLATES
        own = RELEASED if spec == "released" else ()
        return (*(function(PLACEHOLDER) for function in functions), *own)
    if PLACEHOLDER in str(spec):
        return _checked([str(spec)], "the template")
    if not Path(spec).is_file():
        raise unknown("template set or file", spec, NAMES)
    try:
        text = Path(spec).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"the template file {spec} cannot be read: {error}") from error
    return _checked([line.strip() for line in text.splitlines() if line.strip()], str(spec))


def described(spec: Sequence[str]) -> str:
    """These templates in words: the only one, or how many there are and by which name they are known."""
    if len(spec) == 1:
        return f"the prompt `{spec[0].replace('`', '')}`"
    name = next((name for name in NAMES if templates(name) == tuple(spec)), "")
    return f"{len(spec)} prompts" + (f" (`--templates {name}`)" if name else "")


def render(template: str, name: str) -> str:
    """The template with a class name in place of `{}`."""
    return template.replace(PLACEHOLDER, name)


def _checked(lines: Sequence[str], where: str) -> tuple[str, ...]:
    if not lines:
        raise UserError(f"{where} is empty: give at least one template such as 'a photo of a {{}}.'")
    for template in lines:
        if template.count(PLACEHOLDER) != 1:
            raise UserError(
                f"the template {template!r} ({where}) must hold exactly one {{}}, where the class name goes"
            )
    return tuple(lines)
