"""What a stranger, a bad disk or bad luck may put in the place of a file."""

import contextlib
import csv
import io
import json
import os
import shutil
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

SECRET = "f7a1-what-nobody-may-read"
Random: TypeAlias = np.random.Generator
TEXTS = (
    *("", "\x1b[31mred\x1b[0m", "\x9b2J", "\x07", "a\nb", "\x00", "\r", "\u202e", "\ud800"),
    *("[bold]x[/]", "[/]", "[link=file:///etc/passwd]x[/link]", "<script>alert(1)</script>"),
    *("../../x", "/etc/passwd", "x" * 70_000, "os:system", "{}", "%s%n", "nan", "-inf", "9" * 400),
)
NUMBERS = (
    *(0, -1, 1, 7, 2**31, 2**63, 10**30, -(10**30), 1e308, 1e-320, 0.5),
    *(float("inf"), -float("inf"), float("nan")),
)
CELLS = ("inf", "-inf", "nan", "1e999", "-1", "0", "", "x", '"', "1,2", "0x10", "1_000")


def hostile_value(random: Random) -> Any:
    """A value of JSON that does not belong where it is found."""
    deep: Any = []
    for _ in range(int(random.integers(1, 400))):
        deep = [deep] if random.random() < 0.5 else {"x": deep}
    others = (None, True, False, [], {}, [[]], [1] * 5_000, {"a": 1}, deep)
    pool = (TEXTS, NUMBERS, others)[random.integers(3)]
    return pool[random.integers(len(pool))]


# --- Another kind of entry ------------------------------------------------------------------------


def make_socket(path: Path, outside: Path) -> None:
    here = os.open(path.parent, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as made:  # its whole path may be too long for a socket
        made.bind(f"/proc/self/fd/{here}/{path.name}")
    os.close(here)


def make_device(path: Path, outside: Path) -> None:
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))  # /dev/zero
    except PermissionError:  # only root can
        path.symlink_to("/dev/zero")


def make_full_folder(path: Path, outside: Path) -> None:
    path.mkdir()
    (path / "file").write_text("x")
    (path / "link").symlink_to(outside)


def make_sparse(size: int) -> Callable[[Path, Path], None]:
    def make(path: Path, outside: Path) -> None:
        with path.open("wb") as file:
            file.truncate(size)

    return make


KINDS: dict[str, Callable[[Path, Path], None]] = {
    "link to a file outside": lambda path, outside: path.symlink_to(outside / "file"),
    "link to a folder outside": lambda path, outside: path.symlink_to(outside / "deep"),
    "link to a new name outside": lambda path, outside: path.symlink_to(outside / "new"),
    "link to itself": lambda path, outside: path.symlink_to(path.name),
    "link to a device": lambda path, outside: path.symlink_to("/dev/zero"),
    "link within the folder": lambda path, outside: path.symlink_to("run.json"),
    "hard link to a file outside": lambda path, outside: os.link(outside / "file", path),
    "pipe": lambda path, outside: os.mkfifo(path),
    "socket": make_socket,
    "device": make_device,
    "empty folder": lambda path, outside: path.mkdir(),
    "full folder": make_full_folder,
    "sparse, a terabyte": make_sparse(1 << 40),
    "sparse, 200 megabytes": make_sparse(200 << 20),
    "nothing": lambda path, outside: None,
}


def is_plain(path: Path) -> bool:
    """A file of the folder's own, of the usual size."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and found.st_size < 1 << 24


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def replace(random: Random, path: Path, outside: Path) -> str:
    """Another kind of entry in the place of one, or where there was none."""
    name = list(KINDS)[random.integers(len(KINDS))]
    remove(path)
    KINDS[name](path, outside)
    return name


# --- Other bytes ----------------------------------------------------------------------------------


def flip(random: Random, good: bytes) -> bytes:
    bits = np.unpackbits(np.frombuffer(good, np.uint8))
    at = random.choice(len(bits), min(len(bits), random.integers(1, 9)), replace=False)
    bits[at] ^= 1
    return np.packbits(bits).tobytes()


def splice(random: Random, good: bytes) -> bytes:
    """A part of it twice, or in another place."""
    a, b, c = sorted(random.integers(0, len(good) + 1, 3))
    return good[:b] + good[a:c] + good[b:]


BYTES: tuple[Callable[[Random, bytes], bytes], ...] = (
    flip,
    flip,
    splice,
    lambda random, good: good[: random.integers(len(good))],
    lambda random, good: good + random.bytes(random.integers(1, 100)),
    lambda random, good: random.bytes(random.integers(200)),
    lambda random, good: b"",
)


def other_json(random: Random, good: bytes) -> bytes:
    """A value of it is another one, its name is, or it is there twice."""
    whole = json.loads(good)
    places = list(_places(whole))
    holder, key = places[random.integers(len(places))]
    if isinstance(holder, dict) and random.random() < 0.2:
        holder[str(hostile_value(random))[:100]] = holder.pop(key)
    elif random.random() < 0.1:
        del holder[key]
    else:
        holder[key] = hostile_value(random)
    text = json.dumps(whole, indent=2)
    if random.random() < 0.1:
        text = text.replace("{", '{"status": "done", "status": "done",', 1)
    return text.encode()


def _places(value: Any) -> Any:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in list(items):
        yield value, key
        if isinstance(item, dict | list):
            yield from _places(item)


def other_table(random: Random, good: bytes) -> bytes:
    """A cell, a name, a column or a row of it is another one."""
    rows = list(csv.reader(io.StringIO(good.decode())))
    y, x = random.integers(len(rows)), random.integers(len(rows[0]))
    y = 0 if random.random() < 0.2 else y
    match random.integers(6):
        case 0 | 1:
            pool = (*CELLS, *(t for t in TEXTS if t != "\ud800"))
            rows[y][x] = pool[random.integers(len(pool))]
        case 2:
            rows = [row[:x] + row[x + 1 :] for row in rows]
        case 3:
            rows = [[*row, row[x]] for row in rows]
        case 4:
            rows.insert(int(y), rows[-1])
        case 5:
            random.shuffle(rows[0])
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def other_text(random: Random, good: bytes) -> bytes:
    """A word of it is another one."""
    words = good.decode().split(" ")
    words[random.integers(len(words))] = json.dumps(hostile_value(random))
    return " ".join(words).encode()


FORMATS = {".json": other_json, ".csv": other_table, ".toml": other_text, ".jsonl": other_text}


def damage(random: Random, path: Path) -> str:
    """Other bytes in a regular file."""
    good, own = path.read_bytes(), FORMATS.get(path.suffix)
    if not good:
        return "empty as it was"
    if own is not None and random.random() < 0.6:
        with contextlib.suppress(ValueError, IndexError, AttributeError):  # harmed before
            path.write_bytes(own(random, good))
            return own.__name__
    kind = int(random.integers(len(BYTES)))
    path.write_bytes(BYTES[kind](random, good))
    return f"bytes {kind}"
