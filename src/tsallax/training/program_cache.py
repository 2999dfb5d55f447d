"""Compiled programs are kept between commands, in a folder that nobody else can write to.

What is found there is run, so a folder of doubtful ownership is not used.
"""

import os
import stat
from pathlib import Path

ENV = "JAX_COMPILATION_CACHE_DIR"  # jax's own; if it is set, jax uses that folder and we do nothing


def folder() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "tsallax" / "programs"


def is_private(path: Path) -> bool:
    """A folder of our own, no link, not writable by others; False where a system cannot tell."""
    if not hasattr(os, "getuid"):
        return False
    found = path.lstat()
    others = stat.S_IWGRP | stat.S_IWOTH
    return (
        stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & others
    )


def prune(path: Path, most: int = 1 << 30) -> None:
    """Remove the oldest programs until what is left has at most so many bytes."""
    files = [(found.stat(), found) for found in path.iterdir() if found.is_file()]
    total = sum(about.st_size for about, _ in files)
    for about, file in sorted(files, key=lambda pair: pair[0].st_mtime):
        if total <= most:
            return
        file.unlink(missing_ok=True)
        total -= about.st_size


def use_cache() -> Path | None:
    """Tell jax of the folder; None if there is none to be had, which costs only time."""
    if ENV in os.environ:
        return None
    path = folder()
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not is_private(path):
            return None
        prune(path)
    except (OSError, RuntimeError):  # no home
        return None
    import jax

    jax.config.update("jax_compilation_cache_dir", str(path))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
    return path
