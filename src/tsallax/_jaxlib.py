"""Which jaxlib this package runs on: the one table of versions known to be bad on the CPU.

docs/jax-versions.md has the measurements. Nothing here imports jax: the version is read from the
installed package's metadata, so that the refusal comes before jax has started.
"""

import os
import sys
import warnings
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

PINNED = "0.10.1"
TESTED = ("0.10.0", PINNED)
OVERRIDE = "TSALLAX_ANY_JAXLIB"  # set to 1, this environment variable silences `guard`


class Fault(NamedTuple):
    what: str
    issue: str
    wrong: bool  # computes wrong numbers: refused. Otherwise slow or unrepeatable: a warning.


KNOWN_BAD = {
    "0.10.2": Fault(
        "a vmapped matrix-vector product followed by a sum is silently wrong", "jax#39103", True
    ),
    "0.11.0": Fault(
        "one program gives different bits from call to call on several threads", "jax#39741", False
    ),
    "0.11.1": Fault("a small write in a loop rewrites the whole array", "jax#40101", False),
}


class BadJaxlibError(ImportError):
    """The installed jaxlib computes wrong numbers."""


def installed() -> str | None:
    try:
        return version("jaxlib").partition("+")[0]  # without a local build's label
    except PackageNotFoundError:
        return None


def message(jaxlib: str, fault: Fault) -> str:
    return (
        f"jaxlib {jaxlib} is known to be bad on the CPU: {fault.what} ({fault.issue}). "
        f"Install jax=={PINNED} and jaxlib=={PINNED} instead, or set {OVERRIDE}=1 to go on all the "
        "same; `tsallax doctor` shows what is wrong."
    )


def guard() -> None:
    """Refuse a jaxlib that computes wrongly, warn of one that is merely slow or unrepeatable."""
    jaxlib = installed()
    fault = KNOWN_BAD.get(jaxlib or "")
    if jaxlib is None or fault is None or os.environ.get(OVERRIDE) == "1":
        return
    if fault.wrong:
        raise BadJaxlibError(message(jaxlib, fault))
    warnings.warn(message(jaxlib, fault), RuntimeWarning, stacklevel=3)


def is_command() -> bool:
    """Whether this process is the `tsallax` command, by its script or by `python -m tsallax`.

    The command calls `guard` itself, after it has read its arguments: importing its own package
    must not fail, or `tsallax doctor` could not explain what is wrong.
    """
    script = sys.argv[0] if sys.argv else ""
    if script == "-m":  # so named while Python still looks for the module to run
        return "tsallax" in sys.orig_argv
    return Path(script).stem == "tsallax"
