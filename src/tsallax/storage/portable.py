"""The files of a run folder that are copied to other machines: plain data, each of bounded size.

Checkpoints and logs are not copied. Untrusted folders are checked for consistency only: the weights
against their sha256 in `run.json`, the tables against their headers.
"""

import hashlib
import os
from pathlib import Path

from tsallax.storage.files import Directory
from tsallax.storage.run_folder import (
    BEST,
    CURVES,
    INITIAL,
    LONGEST,
    RUN,
    WEIGHTS,
    About,
    read_about,
)
from tsallax.storage.tables import LARGEST, METRICS, TIMING, read_metrics, read_timing
from tsallax.storage.tensors import CHUNK, Digest

ARRAYS = (WEIGHTS, BEST, INITIAL)
CLIPS = ("play.mp4", "play.gif")
# In the order of writing: `run.json`, which makes a folder that of a run, comes last.
LIMITS = {
    **dict.fromkeys(ARRAYS, 1 << 31),
    **dict.fromkeys((METRICS, TIMING), LARGEST),
    **dict.fromkeys((CURVES, *CLIPS), 1 << 28),
    RUN: LONGEST,
}  # the largest size of each in bytes


def check_size(name: str, size: int) -> None:
    if size > LIMITS[name]:
        raise ValueError(f"{name} has {size:,} bytes; at most {LIMITS[name]:,} are taken")


def read_portable(path: Path) -> dict[str, bytes]:
    """Read the portable files of a run folder, if they are intact."""
    check_whole(path)
    with Directory(path) as folder:
        return {name: folder.read(name, most) for name, most in LIMITS.items() if folder.has(name)}


def check_whole(path: Path) -> About:
    """Refuse a folder that is unfinished, or whose files do not match its `run.json`."""
    about = read_about(path)
    if about.status not in ("done", "stopped"):
        raise ValueError(f"{path} is no finished run: it is {about.status}")
    files = about.everything.get("files")
    known = files if isinstance(files, dict) else {}
    if WEIGHTS not in known:
        raise ValueError(f"{path} has no weights that {RUN} lists")
    with Directory(path) as folder:
        for name in ARRAYS:
            if (name in known) != folder.has(name):
                raise ValueError(f"{path}: {RUN} and the folder do not agree on {name}")
            if name in known and known[name] != _digest(folder, name)._asdict():
                raise ValueError(f"{path}: {name} is damaged: its sha256 does not agree")
        read_metrics(folder, ("episodes", "episode_return"))
        read_timing(folder)
    return about


def _digest(folder: Directory, name: str) -> Digest:
    digest = hashlib.sha256()
    with folder.open(name) as file:
        size = os.fstat(file.fileno()).st_size
        check_size(name, size)
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return Digest(size, digest.hexdigest())
