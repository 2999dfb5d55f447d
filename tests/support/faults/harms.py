"""What can be wrong with an entry of a folder: its kind, its size, its bytes, its words."""

import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Random = np.random.Generator
ESCAPE = "\x1b]0;mine\x07\x1b[31m[/x] [red]"
WORDS: list[Any] = [
    None, True, 0, -1, 1.5, 1e308, 10**30, "", "nan", "inf", "../../outside/file", "/dev/zero",
    ESCAPE, "x" * 100_000, "9" * 5000, [], {}, [[[[]]]], {"a": {"b": None}}, [1, "a", None],
]  # fmt: skip
FIELDS = ["", "nan", "inf", "-1", "1e400", "1e18", "0.5", ESCAPE, '"', "x" * 70_000, "9" * 5000]
SPARSE = (1 << 20, 200 << 20, 1 << 30, 1 << 40)  # bytes; what is below a table's limit, and beyond

# --- kinds: what stands in the place of a file or a folder ----------------------------------------


def device(path: Path) -> None:
    """Never ends; a link to it where only root may make one."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except PermissionError:
        path.symlink_to("/dev/zero")


def full_folder(path: Path) -> None:
    path.mkdir()
    (path / "file").write_text("x")


KINDS: dict[str, Callable[[Path, Path], object]] = {
    "missing": lambda path, outside: None,
    "link to a file": lambda path, outside: path.symlink_to(outside / "file"),
    "link to a folder": lambda path, outside: path.symlink_to(outside / "deep"),
    "link to nothing": lambda path, outside: path.symlink_to(outside / "new"),
    "link to itself": lambda path, outside: path.symlink_to(path),
    "hard link": lambda path, outside: path.hardlink_to(outside / "file"),
    "pipe": lambda path, outside: os.mkfifo(path),
    "socket": lambda path, outside: os.mknod(path, stat.S_IFSOCK | 0o666),
    "device": lambda path, outside: device(path),
    "folder": lambda path, outside: path.mkdir(),
    "full folder": lambda path, outside: full_folder(path),
}

# --- contents: what is in a file ------------------------------------------------------------------


def flip(random: Random, good: bytes) -> bytes:
    bits = np.unpackbits(np.frombuffer(good, np.uint8))
    bits[random.choice(len(bits), min(len(bits), random.integers(1, 9)), replace=False)] ^= 1
    return np.packbits(bits).tobytes()


def other_words(random: Random, good: bytes) -> bytes:
    """Valid JSON, line by line or as a whole, in which one value is another, or gone, or twice."""
    lines = good.decode().splitlines()
    at = int(random.integers(len(lines)))
    try:
        value, lines = json.loads(good), [""]
        at = 0
    except ValueError:
        value = json.loads(lines[at])
    lines[at] = json.dumps(_changed(random, value))
    if random.random() < 0.1 and lines[at].startswith("{"):
        key, about = next(iter(value.items()), ("a", 1)) if isinstance(value, dict) else ("a", 1)
        lines[at] = f"{{{json.dumps(key)}: {json.dumps(about)}, {lines[at][1:]}"
    return ("\n".join(lines) + "\n").encode()


def _changed(random: Random, value: Any) -> Any:
    places = list(_places(value))
    if not places or random.random() < 0.05:
        return WORDS[random.integers(len(WORDS))]
    parent, key = places[random.integers(len(places))]
    if random.random() < 0.15:
        del parent[key]
    else:
        parent[key] = WORDS[random.integers(len(WORDS))]
    return value


def _places(value: Any):
    if isinstance(value, dict | list):
        for key, below in list(value.items() if isinstance(value, dict) else enumerate(value)):
            yield value, key
            yield from _places(below)


def other_fields(random: Random, good: bytes) -> bytes:
    """A table in which a field, a column or a row is another, gone or twice."""
    rows = [line.split(",") for line in good.decode().splitlines()]
    row = int(random.integers(len(rows)))
    column = int(random.integers(len(rows[row])))
    match random.integers(6):
        case 0:
            rows = [fields[:column] + fields[column + 1 :] for fields in rows]
        case 1:
            rows = [[*fields, *fields[column : column + 1]] for fields in rows]
        case 2:
            del rows[row]
        case 3:
            rows.insert(row, rows[row])
        case _:
            rows[row][column] = FIELDS[random.integers(len(FIELDS))]
    return ("\n".join(map(",".join, rows)) + "\n").encode()


def words(random: Random, good: bytes, name: str) -> bytes:
    if name.endswith((".json", ".jsonl")):
        return other_words(random, good)
    return other_fields(random, good) if name.endswith(".csv") else flip(random, good)


CONTENTS: dict[str, Callable[[Random, bytes, str], bytes]] = {
    "empty": lambda random, good, name: b"",
    "bits": lambda random, good, name: flip(random, good),
    "cut": lambda random, good, name: good[: random.integers(len(good))],
    "longer": lambda random, good, name: good + random.bytes(random.integers(1, 100)),
    "noise": lambda random, good, name: random.bytes(random.integers(200)),
    "one long line": lambda random, good, name: good.rstrip(b"\n") * 200,
    "nested": lambda random, good, name: b'{"a":' * 5000 + b"[" * 100_000,
    "words": words,
}
SHARE_OF_WORDS = 0.4  # of all harms: the others are found soon, these hide in many places


def harm(random: Random, path: Path, outside: Path) -> str:
    """Do one kind of harm to an entry, whether it is there or not; what it was."""
    if any(not at.is_dir() or at.is_symlink() for at in (path.parent, path.parent.parent)):
        return "nothing: what contains it is gone"
    good = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
    if good and random.random() < SHARE_OF_WORDS:
        path.write_bytes(words(random, good, path.name))
        return f"{path.name}: words"
    kinds = [*KINDS, *(CONTENTS if good else ()), "sparse"]
    kind = kinds[random.integers(len(kinds))]
    if kind in CONTENTS:
        path.write_bytes(CONTENTS[kind](random, good, path.name))
        return f"{path.name}: {kind}"
    remove(path)
    if kind == "sparse":
        with path.open("wb") as file:
            file.truncate(SPARSE[random.integers(len(SPARSE))])
    else:
        KINDS[kind](path, outside)
    return f"{path.name}: {kind}"


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
