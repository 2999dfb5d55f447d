"""`tsallax doctor`: checks of this machine: versions, the compiler, extras."""

import os
import platform
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tsallax import _jaxlib

PACKAGES = (
    "jax", "jaxlib", "numpy", "optax", "jaxtyping", "gymnasium", "matplotlib", "pillow", "rich",
    "tyro",
)  # fmt: skip
EXTRAS = {  # purpose: the distributions, any one of which is enough
    "LunarLander": ("box2d", "box2d-py"),
    "Atari": ("ale-py",),
    "MuJoCo": ("mujoco",),
    "clusters": ("ray",),
    "TensorBoard logs": ("tensorboardX",),
    "Weights & Biases logs": ("wandb",),
    "videos": ("imageio",),
    "export to ONNX": ("onnxruntime",),
    "`tsallax tune`": ("optuna",),
    "push and pull": ("huggingface_hub",),
    "tests of the report page": ("playwright",),
}


class Row(NamedTuple):
    mark: str  # ok, FAILS (the only one that changes the exit code), note, or -
    name: str
    detail: str


def found(*distributions: str) -> str | None:
    """The version of the first distribution that is installed."""
    for name in distributions:
        try:
            return version(name)
        except PackageNotFoundError:
            pass
    return None


def versions() -> Iterator[Row]:
    yield Row("ok", "python", platform.python_version())
    for name in PACKAGES:
        package = found(name)
        yield Row("ok" if package else "FAILS", name, package or "not installed")
    yield jaxlib_row(_jaxlib.installed())


def jaxlib_row(jaxlib: str | None) -> Row:
    name = "jaxlib's record"
    fault = _jaxlib.KNOWN_BAD.get(jaxlib or "")
    if jaxlib and fault:
        return Row("FAILS", name, _jaxlib.message(jaxlib, fault))
    if jaxlib in _jaxlib.TESTED:
        return Row("ok", name, f"{jaxlib} is tested")
    return Row("note", name, f"{jaxlib} is untested: tested are {', '.join(_jaxlib.TESTED)}")


def machine() -> Iterator[Row]:
    import jax

    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield Row("ok", "cores", f"{usable} usable of {os.cpu_count()}")
    yield Row("ok", "devices", ", ".join(map(str, jax.devices())))


def compiler() -> Iterator[Row]:
    from tsallax.cli import compiler_checks as checks

    for check in checks.CHECKS:
        verdict = checks.run(check)
        mark = "ok" if verdict.ok else "FAILS" if check.required else "note"
        yield Row(mark, check.name, f"{check.issue}: {verdict.detail}")


def extras() -> Iterator[Row]:
    for purpose, distributions in EXTRAS.items():
        package = found(*distributions)
        name = f"{distributions[0]}, for {purpose}"
        yield Row("ok" if package else "-", name, package or "not installed")


COLOURS = {"ok": "green", "FAILS": "bold red", "note": "yellow", "-": "dim"}


def show(title: str, rows: Iterable[Row], console: Console) -> bool:
    """Print a section: a table on a terminal, else lines. Returns whether nothing failed."""
    rows = list(rows)
    if console.is_terminal:
        table = Table(title=title, title_justify="left", show_header=False)
        for row in rows:
            table.add_row(Text(row.mark, COLOURS[row.mark]), row.name, Text(row.detail))
        console.print(table)
    else:
        width = max(len(row.name) for row in rows)
        print(
            title, *(f"  {row.mark:5}  {row.name:{width}}  {row.detail}" for row in rows), sep="\n"
        )
    return all(row.mark != "FAILS" for row in rows)


def run() -> int:
    """Check the versions, the compiler and the extras on this machine.

    The exit code is 0 if every required check passed and 1 if one failed. A "note" is not a
    failure.
    """
    console = Console()
    fit = show("Versions", versions(), console)
    try:
        fit &= show("Machine", machine(), console)
    except Exception as error:  # jax does not import or start, so the checks below cannot run
        show("Machine", [Row("FAILS", "jax", f"{type(error).__name__}: {error}")], console)
        return 1
    fit &= show("Compiler, on the CPU", compiler(), console)
    show("Extras, none of them required", extras(), console)
    print("All required checks passed." if fit else "A required check FAILS: see above.")
    return 0 if fit else 1
