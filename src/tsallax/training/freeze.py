"""A run's state as named arrays, and back."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tsallax.training.tensors import Spec


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def freeze(tree: Any) -> dict[str, np.ndarray]:
    """The leaves by their paths; random keys as the numbers they are made of."""
    leaves, _ = jax.tree.flatten_with_path(tree)
    plain = ((at, jax.random.key_data(x) if _is_key(x) else x) for at, x in leaves)
    return {jax.tree_util.keystr(at): np.asarray(x, order="C") for at, x in plain}


def specs(tree: Any) -> dict[str, Spec]:
    """What `freeze` would give, from shapes alone."""
    plain = jax.eval_shape(
        lambda tree: jax.tree.map(lambda x: jax.random.key_data(x) if _is_key(x) else x, tree), tree
    )
    leaves, _ = jax.tree.flatten_with_path(plain)
    return {jax.tree_util.keystr(at): Spec(x.shape, x.dtype) for at, x in leaves}


def thaw(like: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """The tree again, in buffers of its own, which may be donated."""
    leaves, tree = jax.tree.flatten_with_path(like)
    found = []
    for at, leaf in leaves:
        value = jnp.array(arrays[jax.tree_util.keystr(at)])
        found.append(jax.random.wrap_key_data(value) if _is_key(leaf) else value)
    return jax.tree.unflatten(tree, found)
