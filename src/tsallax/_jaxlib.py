"""Set up jax: refuse a jaxlib that is known to be bad, and cache compiled programs.

docs/jax-versions.md has the measurements. The check does not import jax: the version is read from
the installed package's metadata, so that a refusal comes before jax has started.

Compiled programs are cached between commands, in a folder that nobody else can write to. As the
cached programs are executed, the folder is used only if its ownership is certain, and a program
only if it is byte for byte the one that was stored under its name.
"""

import hashlib
import os
import stat
import warnings
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

PINNED = "0.10.1"
TESTED = ("0.10.0", PINNED)
OVERRIDE = "TSALLAX_ANY_JAXLIB"  # set to 1, this environment variable silences `guard`
ENV = "JAX_COMPILATION_CACHE_DIR"  # jax's own; if it is set, jax uses that folder and we do nothing
SEAL = hashlib.sha256().digest_size
OTHERS, STICKY = stat.S_IWGRP | stat.S_IWOTH, stat.S_ISVTX


class Fault(NamedTuple):
    what: str
    issue: str
    wrong: bool  # computes wrong numbers: refused; otherwise slow or unrepeatable: a warning


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
        f"Install jax=={PINNED} and jaxlib=={PINNED} instead, or set {OVERRIDE}=1 to use it "
        "all the same; `tsallax doctor` shows what is wrong."
    )


def guard() -> None:
    """Refuse a jaxlib that computes wrong numbers, warn of one that is slow or unrepeatable."""
    jaxlib = installed()
    fault = KNOWN_BAD.get(jaxlib or "")
    if jaxlib is None or fault is None or os.environ.get(OVERRIDE) == "1":
        return
    if fault.wrong:
        raise BadJaxlibError(message(jaxlib, fault))
    warnings.warn(message(jaxlib, fault), RuntimeWarning, stacklevel=3)


def folder() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "tsallax" / "programs"


def is_private(path: Path) -> bool:
    """Returns whether only this user can write to or replace the folder; False if unknown.

    It must be our own, not a link, and not writable by others. Each folder above it must be ours or
    root's and not writable by others, unless it is sticky, as /tmp is.
    """
    if not hasattr(os, "getuid"):
        return False
    found = path.lstat()
    own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    above = [folder.stat() for folder in path.resolve().parents]
    ours = all(
        about.st_uid in (0, os.getuid()) and (not about.st_mode & OTHERS or about.st_mode & STICKY)
        for about in above
    )
    return own and not found.st_mode & OTHERS and ours


def prune(path: Path, most: int = 1 << 30) -> None:
    """Remove the oldest programs until the rest has at most `most` bytes."""
    files = [(found.stat(), found) for found in path.iterdir() if found.is_file()]
    total = sum(about.st_size for about, _ in files)
    for about, file in sorted(files, key=lambda pair: pair[0].st_mtime):
        if total <= most:
            return
        file.unlink(missing_ok=True)
        total -= about.st_size


class Sealed:
    """jax's cache of programs, each stored after the sha256 of its key and its bytes.

    jax does not check that a file contains the program of its name: another program computes
    something else, and a damaged one may crash.

    Args:
        files: jax's own cache, which reads and writes the files.
        folder: the folder of the files.
    """

    def __init__(self, files: Any, folder: Path):
        self.files, self.folder = files, folder

    def get(self, key: str) -> bytes | None:
        found = self.files.get(key) or b""
        program = found[SEAL:]
        if found and found[:SEAL] == _seal(key, program):
            return program
        # jax would not overwrite an existing file.
        (self.folder / f"{key}-cache").unlink(missing_ok=True)
        return None

    def put(self, key: str, program: bytes) -> None:
        self.files.put(key, _seal(key, program) + program)


def _seal(key: str, program: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\0" + program).digest()


def seal_programs() -> None:
    """Wrap jax's cache in `Sealed`; raises `AttributeError` if this jax has no such function."""
    from jax._src import compilation_cache

    make = compilation_cache.get_file_cache
    if getattr(make, "sealed", False):
        return

    def make_sealed(path: str) -> tuple[Sealed, str] | None:
        made = make(path)
        return made and (Sealed(made[0], Path(path)), path)

    make_sealed.sealed = True  # type: ignore[attr-defined]
    compilation_cache.get_file_cache = make_sealed  # type: ignore[assignment]


def use_cache() -> Path | None:
    """Set jax's cache folder; returns None if there is no safe one, which costs only time."""
    if ENV in os.environ:
        return None
    path = folder()
    try:
        for folder_ in (path.parent, path):  # `parents=True` would not set the mode of the parent
            folder_.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not is_private(path):
            return None
        prune(path)
    except (OSError, RuntimeError):  # no home folder
        return None
    import jax

    try:
        seal_programs()
    except (ImportError, AttributeError):  # another jax: no cache is better than an unchecked one
        return None
    jax.config.update("jax_compilation_cache_dir", str(path))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
    return path
