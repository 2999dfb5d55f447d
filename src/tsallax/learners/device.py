"""The learner of environments that are JAX functions: a period of all cells is one program.

Its `Loop` defines a period: Algorithm 1 with a replay (`replay_device`), or many environments at
once without a replay (`parallel_device`).
"""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P
from jaxtyping import Array, Float, Int, Key

from tsallax.learners import AnyAgent, Arrays, Notes, Period, Tick, with_weights
from tsallax.learners.rollout import evaluate
from tsallax.networks.dense import Params
from tsallax.storage import reader, tensors
from tsallax.types import Environment, HParams

Largest: TypeAlias = Callable[[Int[Array, ""]], Int[Array, ""]]  # the maximum over vmapped cells


class Loop(NamedTuple):
    """The functions of one cell. Equal loops share their programs."""

    init: Callable[..., Any]  # (key): the first state, with `step`, `agent` and `truncations`
    period: Callable[..., Any]  # (state, hp, numbers, largest): the next state, and metrics
    optimisation: int | None = None  # XLA's backend optimisation level; None is its default, 3


class DeviceLearner:
    """Trains the cells of a run in parallel.

    Args:
        loop: the loop of one cell.
        plan: gives the arguments of the program for each period after a step.
        env: the environment.
        agent: the agent.
        hp: the numbers of each cell.
        seeds: the seed of each cell. Cells with equal seeds start from the same state.
        devices: number of devices of this host, which share the cells.
        copies: number of environments per cell.
    """

    def __init__(
        self,
        loop: Loop,
        plan: Callable[[int], Iterator[Any]],
        env: Environment,
        agent: AnyAgent,
        hp: HParams,
        seeds: list[int],
        devices: int = 1,
        copies: int = 1,
    ):
        self.loop, self.plan, self.env, self.agent = loop, plan, env, agent
        self.hp, self.seeds, self.devices, self.copies = hp, seeds, devices, copies

    def start(self, params: Params | None = None) -> Any:
        state = start_cells(self.loop.init, self.seeds)
        if params is None:
            return state
        return own_buffers(state._replace(agent=with_weights(state.agent, params)))

    def shapes(self) -> Any:
        """The shapes and dtypes of what `start` returns."""
        return jax.eval_shape(jax.vmap(self.loop.init), keys_of(self.seeds))

    def train(self, state: Any, tick: Tick) -> Iterator[Period]:
        """A period is one program; `tick` is called once it has been compiled and runs."""
        step = int(state.step[0])
        run = program(self.loop, len(self.seeds), self.devices)
        for numbers in self.plan(int(state.step[0])):
            state, metrics = run(state, self.hp, numbers)
            tick(step)
            metrics = jax.tree.map(np.asarray, metrics)
            step = int(metrics.step[0])
            self._check_truncations(int(np.asarray(state.truncations).max()), step)
            yield Period(step, state, state.agent.params, metrics, {})

    def _check_truncations(self, seen: int, step: int) -> None:
        """Refuse more truncations than declared: their next observations would be wrong."""
        limit = self.env.time_limit
        if seen > (self.copies * (step // self.copies // limit) if limit else 0):
            declared = f"one in {limit} steps at most" if limit else "none"
            raise ValueError(
                f"{self.env.id} truncated {seen} episodes in {step} steps and declares {declared}: "
                "give its Environment the right time_limit"
            )

    def evaluate(
        self, params: Params, episodes: int, greedy: bool, seed: int = 0
    ) -> Float[np.ndarray, "cells episodes"]:
        return np.asarray(evaluate(self.env, self.agent, self.hp, params, episodes, greedy, seed))

    def params(self) -> Params:
        return self.shapes().agent.params

    def save(self, state: Any) -> tuple[Arrays, Notes]:
        return tensors.flatten(state), {}

    def layout(self, notes: Mapping[str, Any]) -> dict[str, tensors.Spec]:
        return tensors.specs_of(self.shapes())

    def restore(self, arrays: Mapping[str, np.ndarray], notes: Mapping[str, Any]) -> Any:
        return reader.unflatten(self.shapes(), arrays)


@lru_cache(maxsize=32)
def program(loop: Loop, cells: int, devices: int = 1) -> Callable[..., Any]:
    """A period of all cells, compiled when it is first called.

    Several devices each have their share of the cells and do not communicate.
    """
    share = cells // devices

    def run(state, hp, numbers):
        largest = {"largest": lambda n: jax.lax.pmax(n, "cells")} if share > 1 else {}
        return over_cells(partial(loop.period, numbers=numbers, **largest), share)(state, hp)

    if devices > 1:
        mesh = jax.make_mesh((devices,), ("devices",), axis_types=(AxisType.Auto,))
        own = P("devices")
        run = jax.shard_map(
            run, mesh=mesh, in_specs=(own, own, P()), out_specs=own, check_vma=False
        )
    level = loop.optimisation
    options = {} if level is None else {"xla_backend_optimization_level": str(level)}
    return jax.jit(run, donate_argnums=0, compiler_options=options)


# For a program that runs once: a quarter of the compile time; devices other than CPUs ignore it.
RUN_ONCE: dict[str, str | bool] = {
    "xla_backend_optimization_level": "0",
    "xla_cpu_use_fusion_emitters": False,
}


def keys_of(seeds: list[int]) -> Key[Array, "cells"]:
    """The key of each cell, which depends on its seed alone.

    They are made together: a program that stacks thousands of keys takes minutes to compile.
    """
    return jax.vmap(jax.random.key)(np.array(seeds, np.uint32))


def start_cells(init: Callable[..., Any], seeds: list[int]) -> Any:
    """The first state of each cell, made by a program so that each leaf has its own buffer."""
    return _over_keys(init)(keys_of(seeds))


@lru_cache(maxsize=32)
def _over_keys(init: Callable[..., Any]) -> Callable[..., Any]:
    return jax.jit(jax.vmap(init), compiler_options=RUN_ONCE)


def own_buffers(tree: Any) -> Any:
    """A copy in which no two leaves share a buffer, so that all of them can be donated."""
    return jax.tree.map(jnp.copy, tree)


def over_cells(function: Callable[..., Any], cells: int) -> Callable[..., Any]:
    """`vmap`, except for one cell: batched products of size one take twice as long on a CPU."""
    if cells > 1:
        return jax.vmap(function, axis_name="cells")

    def alone(*arguments):
        out = function(*jax.tree.map(lambda x: x[0], arguments))
        return jax.tree.map(lambda x: x[None], out)

    return alone


def check_devices(cells: int, devices: int) -> None:
    there = jax.local_device_count()
    if not 1 <= devices <= there:
        raise ValueError(f"devices must be 1 to {there}, the number there is here, not {devices}")
    if cells % devices:
        raise ValueError(f"{cells} runs side by side cannot be shared out to {devices} devices")
