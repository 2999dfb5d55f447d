"""The cells of a run side by side: `vmap` over them, on one device or several."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P


def start_cells(init: Callable[..., Any], seeds: list[int]) -> Any:
    """The first state of each cell. Equal seeds start alike, whatever their numbers."""
    keys = jnp.stack([jax.random.key(seed) for seed in seeds])
    return own_buffers(_over_keys(init)(keys))


@lru_cache(maxsize=32)
def _over_keys(init: Callable[..., Any]) -> Callable[..., Any]:
    return jax.jit(jax.vmap(init))


def own_buffers(tree: Any) -> Any:
    """A copy in which no two leaves share a buffer: all of them can be donated."""
    return jax.tree.map(jnp.copy, tree)


def over_cells(function: Callable[..., Any], cells: int) -> Callable[..., Any]:
    """`vmap`, except for one cell: products in a batch of one take a CPU twice as long."""
    if cells > 1:
        return jax.vmap(function, axis_name="cells")

    def alone(*arguments):
        out = function(*jax.tree.map(lambda x: x[0], arguments))
        return jax.tree.map(lambda x: x[None], out)

    return alone


def on_devices(function: Callable[..., Any], cells: int, devices: int) -> Callable[..., Any]:
    """Compile `function(state, hp, numbers, share)`, which trains `share` cells.

    On several devices each has its share of the cells, and they have nothing to say to each other.
    """
    share = cells // devices

    def run(state, hp, numbers):
        return function(state, hp, numbers, share)

    if devices > 1:
        mesh = jax.make_mesh((devices,), ("devices",), axis_types=(AxisType.Auto,))
        own = P("devices")
        run = jax.shard_map(
            run, mesh=mesh, in_specs=(own, own, P()), out_specs=own, check_vma=False
        )
    return jax.jit(run, donate_argnums=0)


def check_devices(cells: int, devices: int) -> None:
    there = jax.local_device_count()
    if not 1 <= devices <= there:
        raise ValueError(f"devices must be 1 to {there}, the number there is here, not {devices}")
    if cells % devices:
        raise ValueError(f"{cells} runs side by side cannot be shared out to {devices} devices")
