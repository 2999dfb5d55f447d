"""Arrays in one file, in the safetensors format. `reader` reads them back.

The library copies every array to write it and cannot say that what it read was all there was. Here
the bytes go straight from and to the arrays, with their sha256 on the way, and only a file whose
header is the expected one, byte for byte, is read at all.
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
    """What is known of an array before it is read."""

    shape: tuple[int, ...]
    dtype: Any

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape, dtype=object)) * np.dtype(self.dtype).itemsize


class Digest(NamedTuple):
    size: int
    sha256: str


def flatten(tree: Any) -> dict[str, np.ndarray]:
    """The leaves of a tree by their paths; random keys as the numbers they are made of."""
    leaves, _ = jax.tree.flatten_with_path(tree)
    plain = ((at, jax.random.key_data(x) if is_key(x) else x) for at, x in leaves)
    return {jax.tree_util.keystr(at): np.asarray(x, order="C") for at, x in plain}


def specs_of(tree: Any) -> dict[str, Spec]:
    """What `flatten` would give, from shapes alone."""
    plain = jax.eval_shape(
        lambda tree: jax.tree.map(lambda x: jax.random.key_data(x) if is_key(x) else x, tree), tree
    )
    leaves, _ = jax.tree.flatten_with_path(plain)
    return {jax.tree_util.keystr(at): Spec(x.shape, x.dtype) for at, x in leaves}


def is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


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


def write(folder: Directory, name: str, arrays: Mapping[str, np.ndarray]) -> Digest:
    """Write a file; it is on the disk when this returns."""
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
    """The bytes of an array, in place."""
    view = memoryview(part) if isinstance(part, bytes) else part.reshape(-1).view(np.uint8).data
    return [view[i : i + CHUNK] for i in range(0, len(view), CHUNK)]
