"""Arrays in one file, in the safetensors format, written and read strictly.

The library copies every array to write it and cannot say what it read was all there was. Here the
bytes go straight from and to the arrays, with their sha256 on the way, and only a file whose header
is the expected one, byte for byte, is read at all.
"""

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

DTYPES = {
    "bool": "BOOL", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64",
    "uint8": "U8", "uint16": "U16", "uint32": "U32", "uint64": "U64",
    "float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64",
}  # fmt: skip
CHUNK = 1 << 24


class Spec(NamedTuple):
    """What is known of an array before it is read."""

    shape: tuple[int, ...]
    dtype: Any

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape, dtype=object)) * np.dtype(self.dtype).itemsize


class Digest(NamedTuple):
    size: int
    sha256: str


def specs(arrays: Mapping[str, np.ndarray]) -> dict[str, Spec]:
    return {name: Spec(x.shape, x.dtype) for name, x in arrays.items()}


def header(expected: Mapping[str, Spec]) -> bytes:
    """The file's first bytes: eight for a length, then names, types, shapes and places as JSON."""
    table, at = {}, 0
    for name, spec in sorted(expected.items()):
        kind = DTYPES.get(np.dtype(spec.dtype).name)
        if kind is None:
            raise ValueError(f"{name} has the type {np.dtype(spec.dtype)}: it cannot be saved")
        end = at + spec.nbytes
        table[name] = {"dtype": kind, "shape": list(spec.shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(table, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def write(path: Path, arrays: Mapping[str, np.ndarray]) -> Digest:
    """A new file, on the disk when this returns."""
    digest = hashlib.sha256()
    size = 0
    with path.open("xb") as file:
        for part in [header(specs(arrays)), *(arrays[name] for name in sorted(arrays))]:
            for chunk in _chunks(part):
                file.write(chunk)
                digest.update(chunk)
                size += len(chunk)
        file.flush()
        os.fsync(file.fileno())
    return Digest(size, digest.hexdigest())


def read(path: Path, expected: Mapping[str, Spec], wanted: Digest) -> dict[str, np.ndarray]:
    """The arrays of a file that is exactly what is `expected`; else a `ValueError`.

    Nothing is allocated before the file's own size agrees.
    """
    start = header(expected)
    size = len(start) + sum(spec.nbytes for spec in expected.values())
    with open_regular(path) as file:
        found = os.fstat(file.fileno()).st_size
        if not found == size == wanted.size:
            raise ValueError(f"{path.name} has {found:,} bytes; {size:,} were expected")
        if file.read(len(start)) != start:
            raise ValueError(f"{path.name} holds other arrays than this run's")
        digest = hashlib.sha256(start)
        arrays = {}
        for name, spec in sorted(expected.items()):
            array = np.empty(spec.shape, spec.dtype)
            for chunk in _chunks(array):
                if file.readinto(chunk) != len(chunk):
                    raise ValueError(f"{path.name} ends too early")
                digest.update(chunk)
            arrays[name] = array
    if digest.hexdigest() != wanted.sha256:
        raise ValueError(f"{path.name} is damaged: its sha256 does not agree")
    return arrays


def open_regular(path: Path) -> FileIO:
    """To read a regular file, never through a link."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise ValueError(f"{path.name} cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise ValueError(f"{path.name} is no regular file")
    return FileIO(number, "rb")


def _chunks(part: bytes | np.ndarray) -> list[memoryview]:
    """The bytes of an array, in place."""
    view = memoryview(part) if isinstance(part, bytes) else part.reshape(-1).view(np.uint8).data
    return [view[i : i + CHUNK] for i in range(0, len(view), CHUNK)]
