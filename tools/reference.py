"""The API reference: one Markdown page per module, from its docstrings, signatures and comments."""

import ast
import functools
import inspect
import re
import textwrap
from importlib import import_module
from types import ModuleType
from typing import Any

MODULES = (
    "tsallax.policies",
    "tsallax.operators",
    "tsallax.operators.targets",
    "tsallax.tabular",
    "tsallax.stats",
    "tsallax.envs",
    "tsallax.networks",
    "tsallax.agents",
    "tsallax.learners",
    "tsallax.storage.run_folder",
    "tsallax.types",
    "tsallax.api",
    "tsallax.training.config",
    "tsallax.training.model",
    "tsallax",  # last: a name belongs to the first module that has it, one of those above
)


def page_of(module: str) -> str:
    return f"reference/{module.removeprefix('tsallax.').replace('.', '-')}.md"


def public(module: ModuleType) -> dict[str, Any]:
    """The names in `__all__`, or else those that the module defines, without modules."""
    names = getattr(module, "__all__", None)
    if names is None:
        tree = ast.parse(inspect.getsource(module))
        names = [n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    things = {name: getattr(module, name) for name in names if not name.startswith("_")}
    return {name: thing for name, thing in things.items() if not inspect.ismodule(thing)}


@functools.cache
def homes() -> dict[int, str]:
    """The page and anchor of every public object, by its id."""
    found: dict[int, str] = {}
    for module in MODULES:
        for name, thing in public(import_module(module)).items():
            found.setdefault(id(thing), f"{page_of(module)}#{name.lower()}")
    return found


def write_page(module: str) -> str:
    """The page of a module: links to names described on other pages, then its own names."""
    found = import_module(module)
    own, others = [], []
    for name, thing in public(found).items():
        home = homes()[id(thing)]
        if home.startswith(f"{page_of(module)}#"):
            own.append(f"## {name}\n\n{describe(thing)}")
        else:
            others.append(f"- [`{name}`]({home.removeprefix('reference/')}){gist(thing)}")
    parts = [f"# {module}", prose(inspect.getdoc(found) or ""), "\n".join(others), *own]
    return "\n\n".join(part for part in parts if part) + "\n"


def gist(thing: Any) -> str:
    doc = inspect.getdoc(thing) if callable(thing) else None
    return f": {doc.splitlines()[0]}" if doc else ""


def describe(thing: Any) -> str:
    if inspect.isclass(thing):
        return describe_class(thing)
    if inspect.isroutine(thing) or hasattr(thing, "__wrapped__"):
        return describe_function(textwrap.dedent(inspect.getsource(inspect.unwrap(thing))))
    if isinstance(thing, dict):
        return "A table of " + ", ".join(f"`{key}`" for key in thing) + "."
    return f"    {thing!r}"


def describe_class(cls: type) -> str:
    """The fields of a class as in the source, with comments, then its public methods."""
    source = textwrap.dedent(inspect.getsource(cls))
    node = ast.parse(source).body[0]
    assert isinstance(node, ast.ClassDef)
    fields = [n for n in node.body if isinstance(n, ast.AnnAssign)]
    lines = source.splitlines()
    listed = lines[fields[0].lineno - 1 : fields[-1].end_lineno] if fields else []
    # The docstring in the source, as a NamedTuple without one generates one.
    parts = [prose(ast.get_docstring(node) or ""), fence([f"class {node.name}:", *listed])]
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and not method.name.startswith("_"):
            text = textwrap.dedent("\n".join(lines[method.lineno - 1 : method.end_lineno]))
            parts.append(f"### {node.name}.{method.name}\n\n{describe_function(text)}")
    return "\n\n".join(part for part in parts if part)


def describe_function(source: str) -> str:
    """The signature as in the source, with readable shapes, and the docstring."""
    node = ast.parse(source).body[0]
    assert isinstance(node, ast.FunctionDef)
    head = source.splitlines()[node.lineno - 1 : node.body[0].lineno - 1]
    return f"{fence(head)}\n\n{prose(ast.get_docstring(node) or '')}".rstrip()


def fence(lines: list[str]) -> str:
    return "\n".join(["```py", *lines, "```"])


def prose(docstring: str) -> str:
    """Converts Google's `Args:` to a list; everything else is unchanged."""
    head, label, rest = docstring.partition("Args:\n")
    if not label:
        return docstring
    listed, blank, after = rest.partition("\n\n")
    items = re.sub(r"^    (\*{0,2}\w+): ", r"- `\1`: ", listed, flags=re.MULTILINE)
    items = re.sub(r"\n {8,}", " ", items)
    return f"{head}{items}{blank}{textwrap.dedent(after)}"
