"""A strict reader of arrays: a file must be exactly what is expected, to the last byte."""

import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tsallax.storage.files import Directory
from tsallax.storage.tensors import CHUNK, Digest, Spec, chunks, header, is_key

LONGEST_HEADER = 1 << 24  # bytes


def read(
    folder: Directory, name: str, expected: Mapping[str, Spec], wanted: Digest
) -> dict[str, np.ndarray]:
    """Read the arrays of a file, which must be exactly as `expected`, else raise `ValueError`.

    Nothing is allocated before the size of the file has been checked.
    """
    start = header(expected)
    size = len(start) + sum(spec.nbytes for spec in expected.values())
    with folder.open(name) as file:
        found = os.fstat(file.fileno()).st_size
        if not found == size == wanted.size:
            raise ValueError(f"{name} has {found:,} bytes; {size:,} were expected")
        if file.read(len(start)) != start:
            raise ValueError(f"{name} holds other arrays than this run's")
        digest = hashlib.sha256(start)
        arrays = {}
        for key, spec in sorted(expected.items()):
            array = np.empty(spec.shape, spec.dtype)
            for chunk in chunks(array):
                if file.readinto(chunk) != len(chunk):
                    raise ValueError(f"{name} ends too early")
                digest.update(chunk)
            arrays[key] = array
    if digest.hexdigest() != wanted.sha256:
        raise ValueError(f"{name} is damaged: its sha256 does not agree")
    return arrays


def is_whole(folder: Directory, name: str, wanted: Digest) -> bool:
    """Returns whether the bytes of a file are those that were written, whatever they mean."""
    digest = hashlib.sha256()
    with folder.open(name) as file:
        if os.fstat(file.fileno()).st_size != wanted.size:
            return False
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest() == wanted.sha256


def array_shapes(folder: Directory, name: str) -> dict[str, tuple[int, ...]]:
    """The shapes in a file's own header, for error messages; `read` does not rely on them."""
    with folder.open(name) as file:
        length = int.from_bytes(file.read(8), "little")
        try:
            if not 0 < length <= LONGEST_HEADER:
                raise ValueError
            table = json.loads(file.read(length))
            return {str(key): tuple(map(int, about["shape"])) for key, about in table.items()}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise ValueError(f"{name} is damaged: it has no header") from None


def unflatten(like: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """Restore the tree, in new buffers, which may be donated."""
    leaves, tree = jax.tree.flatten_with_path(like)
    found = []
    for at, leaf in leaves:
        value = jnp.array(arrays[jax.tree_util.keystr(at)])
        found.append(jax.random.wrap_key_data(value) if is_key(leaf) else value)
    return jax.tree.unflatten(tree, found)
