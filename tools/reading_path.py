"""Count the files that one reads to follow TAL: `python tools/reading_path.py`.

Two paths: *run*, from `tsallax train CartPole-v1 --algo tal` to the folder that it leaves, and
*agent*, the equation and the agent alone. Each is run once, tiny, under a profiler. A file counts

- if one of its functions runs outside of an import (class bodies and calls at import do not count),
- or if it has no functions, and a file that counts imports a name from it: types, tables of
  numbers, protocols, and `__init__` files that only pass names on.

Of a file that counts, all lines count. The second column has the lines of the functions that ran:
what is left of a file is what one reads in passing.
"""

import argparse
import ast
import contextlib
import io
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
TINY = ("preset=paper", "steps=200", "target-period=100", "batch=8", "buffer=100", "hidden=8")


class Route(NamedTuple):
    """A path through the code."""

    run: Callable[[], object]
    files: int  # at most
    lines: int | None  # at most


def train() -> None:
    """From the command to the folder."""
    from tsallax.cli import main

    tiny = [f"--{option}" for option in TINY]
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        code = main(["train", "CartPole-v1", "--algo", "tal", *tiny, "--out", f"{folder}/run"])
    if code:
        raise SystemExit(f"the command failed with code {code}")


def update() -> None:
    """The equation and the agent: one update of a linear network."""
    import jax
    import jax.numpy as jnp

    from tsallax.agents import make_agent
    from tsallax.networks import Network
    from tsallax.operators import get_algorithm, make_hparams
    from tsallax.types import Transition

    linear = Network(lambda key: jax.random.normal(key, (4, 2)), lambda w, x: x @ w)
    agent = make_agent(linear, get_algorithm("tal"), q=2.0)
    seen, none = jnp.ones((3, 4)), jnp.zeros(3)
    batch = Transition(seen, none.astype(int), none, none.astype(bool), seen)
    key = jax.random.key(0)
    agent.update(agent.init(key), batch, make_hparams("tal"), key)


# The agent comes first: modules imported by a run may register callbacks in jax, which would count.
PATHS = {"agent": Route(update, 8, None), "run": Route(train, 28, 3000)}


def executed(run: Callable[[], object], package: Path) -> dict[Path, set[CodeType]]:
    """The functions of the package that run outside of an import, by file."""
    found: dict[Path, set[CodeType]] = {}
    inside, importing = f"{package}{os.sep}", 0

    def note(frame: FrameType, event: str, _: Any) -> None:
        nonlocal importing
        code = frame.f_code
        if code.co_name == "<module>":
            importing += {"call": 1, "return": -1}.get(event, 0)
        elif event == "call" and not importing and code.co_filename.startswith(inside):
            found.setdefault(Path(code.co_filename), set()).add(code)

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return found


def lines_of(functions: set[CodeType]) -> int:
    """The number of lines of the functions, each counted once."""
    found: set[int] = set()
    for code in functions:
        last = max(line for *_, line in code.co_lines() if line)
        found.update(range(code.co_firstlineno, last + 1))
    return len(found)


def has_functions(tree: ast.Module) -> bool:
    """Returns whether a file has functions with a body; those of a protocol are declarations.

    A property counts as a field.
    """
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return any(
        not all(
            isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)
            for line in function.body
        )
        for function in functions
        if "property" not in map(ast.unparse, function.decorator_list)
    )


def imported(tree: ast.AST, package: Path, ran: set[int]) -> Iterator[ast.ImportFrom]:
    """The imports from the package, except for type checkers or in functions that never ran.

    `ran` has the first lines of the functions that ran.
    """
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(x.lineno for x in node.decorator_list)])
            if first not in ran:
                continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == package.name:
            yield node
        yield from imported(node, package, ran)


def targets(node: ast.ImportFrom, package: Path) -> Iterator[Path]:
    """The files that define the names of an import; an `__init__` only if it defines them."""
    place = package.parent.joinpath(*str(node.module).split("."))
    modules = [place / f"{alias.name}.py" for alias in node.names]
    yield from modules
    yield place.with_suffix(".py")
    if not all(path.is_file() or path.with_suffix("").is_dir() for path in modules):
        yield place / "__init__.py"


def names_only(ran: dict[Path, set[CodeType]], package: Path) -> set[Path]:
    """The files without functions that these import names from, directly or indirectly."""
    found: set[Path] = set()
    left = set(ran)
    while left:
        file = left.pop()
        first_lines = {code.co_firstlineno for code in ran.get(file, set())}
        for node in imported(ast.parse(file.read_text()), package, first_lines):
            for near in targets(node, package):
                new = near.is_file() and near not in ran and near not in found
                if new and not has_functions(ast.parse(near.read_text())):
                    found.add(near)
                    left.add(near)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "path", nargs="?", choices=PATHS, help="one of the two paths; both if not given"
    )
    parser.add_argument("--source", type=Path, default=ROOT / "src", help="another tree to count")
    options = parser.parse_args()
    source = options.source.resolve()
    sys.path.insert(0, str(source))
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    within = [report(name, source / "tsallax") for name in PATHS if options.path in (None, name)]
    return 0 if all(within) else 1


def report(name: str, package: Path) -> bool:
    """Print the files of a path; returns whether they are within its limits."""
    path = PATHS[name]
    ran = executed(path.run, package)
    files = sorted(ran.keys() | names_only(ran, package))
    print(f"{name}: {path.run.__doc__}")
    total = followed = 0
    print("  lines    ran")
    for file in files:
        lines, of_functions = len(file.read_text().splitlines()), lines_of(ran.get(file, set()))
        total, followed = total + lines, followed + of_functions
        note = "" if file in ran else "  (names only)"
        print(f"  {lines:5,}  {of_functions:5,}  {file.relative_to(package)}{note}")
    print(f"  {total:5,}  {followed:5,}")
    limit = f"{path.files} files" + (f" and {path.lines:,} lines" if path.lines else "")
    good = len(files) <= path.files and (path.lines is None or total <= path.lines)
    print(f"{len(files)} files, {total:,} lines (at most {limit}: {'yes' if good else 'no'})\n")
    return good


if __name__ == "__main__":
    sys.exit(main())
