"""The help of a subcommand, and its error messages, in plain lines of 80 columns.

`tyro` draws both as boxes, with "(default: None)" for every option without a default.
"""

import dataclasses
import difflib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import tyro

COLUMNS, WIDEST = 80, 24  # of a line; of an option with its description on the same line
METAVARS = {Path: "PATH", int: "N", float: "X", str: "NAME", bool: ""}
RULE = re.compile(r"[╭╰]|[│ ]*(─{4}|-{4})")  # dashes are for terminals without box characters


class Option(NamedTuple):
    words: str  # as typed: "--seed N", or "RUN"
    about: str


def help_page(name: str, function: Callable[..., Any]) -> str:
    """The output of `tsallax NAME --help`, from the docstring and the signature."""
    intro, _ = _docs(function)
    options = list(_options(function))
    first = [option.words for option in options if not option.words.startswith("-")]
    rest = ["[OPTIONS]"] if len(first) < len(options) else []
    width = max((len(x.words) for x in options if len(x.words) <= WIDEST), default=0)
    lines = [" ".join(["usage: tsallax", name, *first, *rest])]
    for paragraph in intro.split("\n\n"):
        lines += ["", *textwrap.wrap(" ".join(paragraph.split()), COLUMNS)]
    lines += [""] if options else []
    for words, about in options:
        lead, indent = f"  {words:{width}}  ", " " * (width + 4)
        if len(words) > width:
            lines, lead = [*lines, f"  {words}"], indent
        lines += textwrap.wrap(about, COLUMNS, initial_indent=lead, subsequent_indent=indent)
    return "\n".join(lines)


def _docs(documented: Any) -> tuple[str, dict[str, str]]:
    """The text before `Args:`, and the description of each argument."""
    intro, _, listed = (inspect.getdoc(documented) or "").partition("\n\nArgs:\n")
    found = re.findall(r"^    (\w+): (.*(?:\n      .*)*)", listed, re.M)
    return intro, {name: " ".join(about.split()).removesuffix(".") for name, about in found}


def _options(documented: Any) -> Iterator[Option]:
    """The options of a function or, for options shared by several commands, of a dataclass."""
    kinds, about = get_type_hints(documented, include_extras=True), _docs(documented)[1]
    for parameter in inspect.signature(documented).parameters.values():
        kind, marks = kinds[parameter.name], ()
        if get_origin(kind) is Annotated:
            kind, *marks = get_args(kind)
        if dataclasses.is_dataclass(kind):
            yield from _options(kind)
        else:
            yield _option(parameter, kind, marks, about[parameter.name])


def _option(parameter: inspect.Parameter, kind: Any, marks: Any, about: str) -> Option:
    given = {key: getattr(mark, key) for mark in marks for key in ("metavar", "name", "aliases")
             if getattr(mark, key, None)}  # fmt: skip
    base = next((x for x in (kind, *get_args(kind)) if x in METAVARS), None)
    choices = "{" + ",".join(map(str, get_args(kind))) + "}" if get_origin(kind) is Literal else ""
    metavar = given.get("metavar") or choices or METAVARS.get(base, "")
    default = parameter.default
    if default not in (None, "", (), False, parameter.empty):
        about = f"{about} (default: {default})"
    if tyro.conf.Positional in marks:
        return Option(metavar if "metavar" in given else parameter.name.upper(), about)
    flags = [*given.get("aliases", ()), f"--{given.get('name') or parameter.name}"]
    return Option(f"{', '.join(flags).replace('_', '-')} {metavar}".rstrip(), about)


def _likeness(flag: str, typed: str) -> float:
    return difflib.SequenceMatcher(None, flag, typed).ratio()


def refusal(name: str, boxed: str) -> str:
    """`tyro`'s error message for an invalid command line, in one line."""
    parts: list[list[str]] = [[]]
    for line in boxed.splitlines():
        if RULE.match(line):
            parts.append([])
        elif line.strip("│ "):
            parts[-1].append(line.strip("│ "))
    parts = [part for part in parts if part]
    if "╭" not in boxed:  # the title, which otherwise is in the frame
        parts = parts[1:]
    first = " ".join(parts[0] if parts else boxed.split())  # another tyro may draw other frames
    said = re.sub(r"^Error parsing |(?<=^Missing) from.*?(?=:)| \(required\)", "", first)
    near = [x for part in parts if part and part[0].startswith("Perhaps you meant") for x in part]
    typed = next(iter(re.findall(r"--[\w-]+", first)), "")
    names = [re.findall(r"--[\w-]+", line) for line in near if line.startswith("--")]
    flags = [max(found, key=lambda flag: _likeness(flag, typed)) for found in names]
    flags.sort(key=lambda flag: -_likeness(flag, typed))
    hint = f"; perhaps you meant {' or '.join(flags)}" if flags else ""
    said = said[:1].lower() + said[1:].rstrip(".")
    return f"tsallax {name}: {said}{hint}. Options: tsallax {name} --help"
