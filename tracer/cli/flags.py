"""Flags of a command, read from its signature; argparse parses them and writes the help."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from argparse import ArgumentError, ArgumentParser, RawDescriptionHelpFormatter
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from itertools import pairwise
from types import NoneType
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from tracer.api.terminal import say
from tracer.core.errors import UserError, unknown
from tracer.methods.base import arguments as descriptions

T = TypeVar("T")
HELP = {"-h", "--help", "--help-all"}
WIDTH, INDENT = 80, 20
REQUIRED = inspect.Parameter.empty
NUMBERS = {int: "a whole number", float: "a number"}


class Flag(NamedTuple):
    """A flag, or a positional argument, whose name is in capitals."""

    name: str
    key: str  # of the parameter
    kind: Any  # type of one value
    many: bool
    optional: bool  # the word None is a value
    default: Any
    text: str

    @property
    def choices(self) -> dict[str, Any]:
        """The values by their word, if there are only some."""
        return {str(each): each for each in get_args(self.kind)} if get_origin(self.kind) is Literal else {}

    @property
    def usage(self) -> str:
        """The name, and what to write after it."""
        if self.kind is bool or not self.name.startswith("-"):
            return self.name
        return f"{self.name} {'|'.join(self.choices) or self.kind.__name__.upper()}"

    @property
    def help(self) -> str:
        """What it does, and its default."""
        default = " ".join(map(str, self.default)) if isinstance(self.default, tuple) else self.default
        if default is None or default is False or default == "":
            return self.text
        return f"{self.text} ({'required' if default is REQUIRED else f'default: {default}'})"

    def read(self, word: str) -> Any:
        """The value of a word."""
        if self.optional and word == "None":
            return None
        if self.choices:
            if word not in self.choices:
                raise unknown(f"value of {self.name}", word, self.choices)
            return self.choices[word]
        try:
            return self.kind(word)
        except ValueError:
            raise UserError(f"{self.name} {word}: give {NUMBERS.get(self.kind, self.usage)}") from None

    def add_to(self, parser: Any) -> None:
        """Declare it to argparse."""
        settings: dict[str, Any] = {"default": self.default, "help": self.help.replace("%", "%%")}
        if self.kind is bool:
            parser.add_argument(
                self.name, dest=self.key, action=f"store_{not self.default}".lower(), **settings
            )
            return
        name, _, metavar = self.usage.partition(" ")
        settings |= {"type": self.read, "metavar": metavar or name}
        if metavar:
            parser.add_argument(name, dest=self.key, nargs="*" if self.many else None, **settings)
        else:
            parser.add_argument(self.key, nargs="*" if self.many else "?", **settings)


def command(prog: str) -> Callable[[Callable[..., int]], Callable[[list[str]], int]]:
    """A decorator for the `main` of a command: its parameters are the flags, and its docstring is the help.

    Parameters that are positional only are positional arguments; those of a dataclass stand in its place.
    """
    return lambda function: lambda arguments: cli(function, arguments, prog)


def cli(command: Callable[..., T], arguments: Sequence[str], prog: str) -> T:
    """Call `command` with the values of these arguments, or print its help and exit."""
    return call(command, parse([command], arguments, prog, summary(command)))


def parse(
    parts: Sequence[Callable[..., Any]],
    arguments: Sequence[str],
    prog: str,
    about: str,
    after: str = "",
    sections: Mapping[str | None, Sequence[str]] | None = None,
) -> dict[str, Any]:
    """The values of the flags of all parts, by parameter; words that have no place there raise UserError.

    `--help` prints a help of 80 columns, with `after` at its end, and exits. It explains all flags, or those of the
    parameters in `sections`, under their titles.
    """
    flags = [flag for part in parts for flag in flags_of(part)]
    for key, count in Counter(flag.key for flag in flags).items():
        if count > 1:
            raise UserError(f"{prog} has a flag for {key} already: give that parameter another name")
    if HELP & set(arguments):
        say(_parser(flags, prog, about, after, sections).format_help().rstrip())
        raise SystemExit(0)
    words = [re.sub("^--[a-z_-]+", lambda name: name[0].replace("_", "-"), word) for word in arguments]
    by_name = {flag.name: flag for flag in flags}
    try:
        found, rest = _parser(flags, prog).parse_known_args(words)
    except ArgumentError as error:
        flag = by_name[str(error.argument_name)]
        problem = "takes no value" if flag.kind is bool else f"needs a value: {flag.usage}"
        raise UserError(f"{flag.name} {problem}") from None
    for word in sorted(rest, key=lambda word: not word.startswith("--")):
        if not word.startswith("--"):
            raise UserError(f"{prog} has no place for {word!r}: see {prog} --help")
        choices = [name for name in by_name if name.startswith("--")]
        raise unknown(f"flag of {prog}", word.partition("=")[0], choices)
    values = vars(found)
    for flag in flags:
        if values[flag.key] is REQUIRED:
            raise UserError(f"{prog} needs {flag.usage}: {flag.text}")
        if flag.many:
            values[flag.key] = tuple(values[flag.key])
    return values


def call(command: Callable[..., T], values: Mapping[str, Any]) -> T:
    """Call a command, or build a dataclass, with its own of these values."""
    signature, hints = inspect.signature(command), get_type_hints(command)
    bound = signature.bind_partial()
    for name in signature.parameters:
        bound.arguments[name] = values[name] if name in values else call(hints[name], values)
    return command(*bound.args, **bound.kwargs)


def flags_of(command: Callable[..., Any]) -> list[Flag]:
    """The flags of a command, in order."""
    hints, texts, flags = get_type_hints(command), _descriptions(command), []
    for key, parameter in inspect.signature(command).parameters.items():
        hint, default, word = hints.get(key, str), parameter.default, key.replace("_", "-")
        if is_dataclass(hint):
            flags += [flag._replace(text=texts.get(flag.key, flag.text)) for flag in flags_of(hint)]
            continue
        many, optional = get_origin(hint) in (tuple, list), NoneType in get_args(hint)
        kind = get_args(hint)[0] if many or optional else hint
        name = f"--no-{word}" if kind is bool and default is True else f"--{word}"
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            name = word.upper()
        flags.append(Flag(name, key, kind, many, optional, default, texts.get(key, "")))
    return flags


def _descriptions(command: Callable[..., Any]) -> dict[str, str]:
    """What each parameter means: the text below a field, or "Args:" in the docstring of a function or its module."""
    if not inspect.isclass(command):
        function: Any = inspect.unwrap(command)
        return descriptions(function.__globals__.get("__doc__")) | descriptions(function.__doc__)
    texts = {}
    for base in filter(is_dataclass, reversed(command.__mro__)):
        definition: Any = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        for field, below in pairwise(definition.body):
            match field, below:
                case ast.AnnAssign(ast.Name(name)), ast.Expr(ast.Constant(str(text))):
                    texts[name] = text
    return texts


def summary(command: Callable[..., Any]) -> str:
    """The docstring of a command without its arguments; paragraphs with indented lines are examples, not filled."""
    text = (inspect.getdoc(command) or "").partition("\nArgs:")[0].strip()
    parts = text.split("\n\n")
    return "\n\n".join(part if "\n " in part else textwrap.fill(part, WIDTH) for part in parts)


def _parser(
    flags: Sequence[Flag],
    prog: str,
    about: str = "",
    after: str = "",
    sections: Mapping[str | None, Sequence[str]] | None = None,
) -> ArgumentParser:
    needed = [flag.usage for flag in flags if flag.default is REQUIRED or not flag.name.startswith("-")]
    parser = ArgumentParser(
        usage=" ".join([prog, *needed, "[FLAGS]"]),
        description=about,
        epilog=after,
        formatter_class=lambda prog: RawDescriptionHelpFormatter(prog, max_help_position=INDENT, width=WIDTH),
        add_help=False,
        allow_abbrev=False,
        exit_on_error=False,
    )
    parser._negative_number_matcher = re.compile(r"-(\.?\d|inf)")  # else -1e-3 would be a flag
    by_key = {flag.key: flag for flag in flags}
    for title, keys in (sections or {None: list(by_key)}).items():
        group = parser.add_argument_group(title)
        for key in keys:
            by_key[key].add_to(group)
    return parser
