"""Flags of a command: tyro parses them; the help and the suggestions for misspelt flags are written here."""

from __future__ import annotations

import inspect
import re
import textwrap
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeVar

import tyro

from tracer.api.terminal import say
from tracer.core.errors import UserError, unknown

T = TypeVar("T")
FLAT = (tyro.conf.OmitArgPrefixes, tyro.conf.FlagCreatePairsOff)
HELP = {"-h", "--help", "--help-all"}
WIDTH, INDENT = 80, 18
NUMBERS = {  # how the help writes a value, how it is read, and what an error calls it
    "INT": (int, "a whole number"),
    "NUMBER": (int, "a whole number"),
    "FLOAT": (float, "a number"),
}


class Flag(NamedTuple):
    """A flag, or a positional argument, whose name is in capitals."""

    name: str
    value: str  # what to write after it; empty for a switch
    help: str
    required: bool


class Groups(NamedTuple):
    """The flags of a long help by heading, and those that a short help explains."""

    explained: Sequence[str]
    flags: Mapping[str, Sequence[str]]


def cli(
    command: Callable[..., T],
    arguments: list[str],
    prog: str,
    about: str = "",
    groups: Groups | None = None,
    after: str = "",
    also: Sequence[Flag] = (),
) -> T:
    """Call `command` with the values of these arguments. A flag that it does not have raises UserError.

    `--help` prints a help of 80 columns, `after` at its end, and exits; with `groups` it is short, and `--help-all`
    explains every flag. `also` are flags that a misspelt one may have meant, beside those of `command`.
    """
    flags = flags_of(command)
    if HELP & set(arguments):
        body = _body(flags, prog, groups, everything="--help-all" in arguments)
        say("\n\n".join(filter(None, [_usage(prog, flags), about or _summary(command), body, after])))
        raise SystemExit(0)
    check(arguments, flags, prog, also)
    check_values(arguments, flags)
    return tyro.cli(command, args=arguments, prog=prog, config=FLAT)


def command(prog: str) -> Callable[[Callable[..., int]], Callable[[list[str]], int]]:
    """A decorator for the `main` of a command: its parameters are the flags, and its docstring is the help."""

    def decorate(function: Callable[..., int]) -> Callable[[list[str]], int]:
        return lambda arguments: cli(function, arguments, prog)

    return decorate


def cli_of_two(command: Callable[..., T], arguments: list[str], prog: str, after: str) -> tuple[T, list[str]]:
    """Like `cli`; arguments that `command` does not know are returned, for a second command."""
    if HELP & set(arguments):
        return cli(command, arguments, prog, after=after), []
    check_values(arguments, flags_of(command))
    return tyro.cli(command, args=arguments, prog=prog, config=FLAT, return_unknown_args=True)


@cache  # tyro reads the source of every flag, which takes longer than the rest of a command line
def flags_of(command: Callable[..., Any]) -> list[Flag]:
    """The flags of a command, in order."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # tyro offers no other way to list them
        parser = tyro.extras.get_parser(command, config=FLAT, add_help=False)
    actions = [action for group in parser._action_groups for action in group._group_actions]
    flags = []
    for action in actions:
        value = re.sub(r"\{None\}\||None,|[{}]", "", str(action.metavar or "")).replace(",", "|")
        value = re.sub(r"\[(.*) \[\1 \.\.\.\]\]", r"\1 …", value)
        text, required = re.subn(r"\s*\(required\)$", "", str(action.help).replace("%%", "%"))
        text = re.sub(r"\s*\(default: (None|False|)\)$", "", text)
        if action.option_strings:
            name = action.option_strings[-1]
        else:
            positional = re.sub(r"^\[(.*)\]$", r"\1", value)
            name, value = re.sub(r"STR|PATH", action.dest.upper(), positional), ""
        flags.append(Flag(name, value, text, bool(required)))
    return flags


def check(arguments: Sequence[str], flags: Sequence[Flag], prog: str, also: Sequence[Flag] = ()) -> None:
    """Raise for a flag that there is not, naming the nearest one, and for a required one that is missing."""
    names = [flag.name for flag in flags]
    words = {word.partition("=")[0].replace("_", "-") for word in arguments if re.match(r"--[a-z]", word)}
    for word in sorted(words.difference(names)):
        choices = [*names, *(flag.name for flag in also)]
        raise unknown(f"flag of {prog}", word, [name for name in choices if name.startswith("--")])
    for flag in flags:
        if flag.required and flag.name.startswith("--") and flag.name not in words:
            raise UserError(f"{prog} needs {flag.name} {flag.value}: {flag.help}")


def check_values(arguments: Sequence[str], flags: Sequence[Flag]) -> None:
    """Raise for a value that its flag cannot have, in one sentence: tyro prints a box with the names of types."""
    by_name = {flag.name: flag for flag in flags if flag.value and "…" not in flag.value}
    for word, following in zip(arguments, (*arguments, "--")[1:], strict=True):
        name, equals, value = word.partition("=")
        flag = by_name.get(name.replace("_", "-"))
        if flag is None:
            continue
        if not equals and following.startswith("--"):
            raise UserError(f"{flag.name} needs a value: {flag.name} {flag.value}")
        value, choices = value if equals else following, flag.value.split("|")
        if value == "None" or value in choices:
            continue
        if flag.value.islower():
            raise unknown(f"value of {flag.name}", value, choices)
        number, what = NUMBERS.get(flag.value, (str, ""))
        try:
            number(value)
        except ValueError:
            raise UserError(f"{flag.name} {value}: give {what}") from None


def _usage(prog: str, flags: Sequence[Flag]) -> str:
    needed = [flag for flag in flags if flag.required or not flag.name.startswith("-")]
    words = [f"{flag.name} {flag.value}".rstrip() for flag in needed]
    return " ".join(["usage:", prog, *words, "[FLAGS]"])


def _summary(command: Callable[..., Any]) -> str:
    """The docstring of a command without its arguments; paragraphs with indented lines are examples, not filled."""
    text = (inspect.getdoc(command) or "").partition("\nArgs:")[0].strip()
    parts = text.split("\n\n")
    return "\n\n".join(part if "\n " in part else textwrap.fill(part, WIDTH) for part in parts)


def _body(flags: Sequence[Flag], prog: str, groups: Groups | None, *, everything: bool) -> str:
    """The flags and what they do; with groups, all of them under their headings, or the most important ones."""
    if groups is None:
        return _explained(flags)
    if everything:
        named = {
            title: [each for each in flags if each.name in names] for title, names in groups.flags.items()
        }
        return "\n\n".join(f"{title}\n{_explained(each)}" for title, each in named.items() if each)
    lines = [_explained([each for each in flags if each.name in groups.explained]), ""]
    lines += [f"More flags, explained by `{prog} --help-all`:"]
    for title, names in groups.flags.items():
        rest = "  ".join(name for name in names if name not in groups.explained)
        first, others = f"  {title:9} ", " " * 12
        lines += textwrap.wrap(
            rest, WIDTH, initial_indent=first, subsequent_indent=others, break_on_hyphens=False
        )
    return "\n".join(lines)


def _explained(flags: Sequence[Flag]) -> str:
    """Lines of a help: each flag, and what it does beside or below it."""
    lines, margin = [], " " * INDENT
    for flag in flags:
        words = f"  {flag.name} {flag.value}".rstrip()
        text = f"{flag.help} (required)" if flag.required else flag.help
        first, *rest = textwrap.wrap(text, WIDTH, initial_indent=margin, subsequent_indent=margin) or [margin]
        beside = len(words) < INDENT
        lines += [f"{words:{INDENT}}{first.strip()}", *rest] if beside else [words, first, *rest]
    return "\n".join(lines)
