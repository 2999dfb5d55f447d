"""Writes arrays to one file in the safetensors format. `reader` reads them.

The safetensors library copies every array to write it, and cannot check that it has read the whole
file. Here bytes are written and read without a copy, while their sha256 is computed, and a file is
read only if its header is the expected one, byte for byte.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from tsallax.storage.files import Directory, write_all

DTYPES = {
    "bool": "BOOL", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64",
    "uint8": "U8", "uint16": "U16", "uint32": "U32", "uint64": "U64",
    "float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64",
}  # fmt: skip
CHUNK = 1 << 24


class Spec(NamedTuple):
    """The shape and dtype that an array must have to be read."""

    shape: tuple[int, ...]
    dtype: Any

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape, dtype=object)) * np.dtype(self.dtype).itemsize


class Digest(NamedTuple):
    size: int
    sha256: str


def flatten(tree: Any) -> dict[str, np.ndarray]:
    """The leaves of a tree by their paths; random keys are converted to their key data."""
    leaves, _ = jax.tree.flatten_with_path(tree)
    plain = ((at, jax.random.key_data(x) if is_key(x) else x) for at, x in leaves)
    return {jax.tree_util.keystr(at): np.asarray(x, order="C") for at, x in plain}


def specs_of(tree: Any) -> dict[str, Spec]:
    """The specs of what `flatten` would return, from shapes alone."""
    plain = jax.eval_shape(
        lambda tree: jax.tree.map(lambda x: jax.random.key_data(x) if is_key(x) else x, tree), tree
    )
    leaves, _ = jax.tree.flatten_with_path(plain)
    return {jax.tree_util.keystr(at): Spec(x.shape, x.dtype) for at, x in leaves}


def is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def header(expected: Mapping[str, Spec]) -> bytes:
    """The file's header: its length in 8 bytes, then names, dtypes, shapes and offsets as JSON."""
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


def write(folder: Directory, name: str, arrays: Mapping[str, np.ndarray]) -> Digest:
    """Write a file and sync it to disk."""
    digest, size = hashlib.sha256(), 0
    specs = {key: Spec(x.shape, x.dtype) for key, x in arrays.items()}
    with folder.replacing(name) as file:
        for part in [header(specs), *(arrays[key] for key in sorted(arrays))]:
            for chunk in chunks(part):
                write_all(file, chunk)
                digest.update(chunk)
                size += len(chunk)
    return Digest(size, digest.hexdigest())


def chunks(part: bytes | np.ndarray) -> list[memoryview]:
    """Views of the bytes of an array, in chunks."""
    view = memoryview(part) if isinstance(part, bytes) else part.reshape(-1).view(np.uint8).data
    return [view[i : i + CHUNK] for i in range(0, len(view), CHUNK)]
