"""A run: a configuration becomes programs, and the programs a stream of metrics."""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from tsallax import envs
from tsallax.agents import Agent, make_agent
from tsallax.envs.base import Environment
from tsallax.networks import Network, minatar_conv, mlp
from tsallax.operators import get_algorithm, make_hparams
from tsallax.replay import make_ring
from tsallax.training.config import Config, grid
from tsallax.training.loop import Loop, Metrics, RunState, Schedule, make_loop
from tsallax.types import HParams

NETWORKS = {"mlp": mlp, "minatar-conv": minatar_conv}


class Cell(NamedTuple):
    """One column of the run: a seed with its numbers."""

    seed: int
    numbers: dict[str, float]


class Run(NamedTuple):
    """What is fixed for the whole run. The leading axis of every array is the cells."""

    config: Config
    cells: list[Cell]
    env: Environment
    agent: Agent
    loop: Loop
    hp: HParams


def make_network(config: Config, env: Environment) -> Network:
    observation = jax.eval_shape(lambda key: env.observe(env.reset(key)), jax.random.key(0))
    head = (env.num_actions, *((config.quantiles,) if config.head == "quantile" else ()))
    if config.network == "minatar-conv" and len(observation.shape) != 3:
        raise ValueError(f"{config.env} gives no images: the network must be an mlp")
    return NETWORKS[config.network](observation.shape, head, config.hidden)


def make_run(config: Config, network: Network | None = None) -> Run:
    """The programs of a resolved configuration; `network` may be a user's own pair."""
    env = envs.make(config.env, **config.env_options)
    agent = make_agent(
        network or make_network(config, env),
        get_algorithm(config.algo),
        method=config.policy,
        optimiser=config.optimiser,
        loss=config.loss,
        acting=config.acting,
        shared_draw=config.sal_draw == "update",
    )
    schedule = Schedule(config.batch, config.train_period)
    loop = make_loop(env, agent, make_ring(config.buffer, env.time_limit), schedule)
    seeds = range(config.first_seed, config.first_seed + config.seeds)
    cells = [Cell(seed, numbers) for numbers in grid(config) for seed in seeds]
    return Run(config, cells, env, agent, loop, stack_hparams(config, cells))


def stack_hparams(config: Config, cells: list[Cell]) -> HParams:
    decay = config.epsilon_fraction * config.steps
    rows = [make_hparams(config.algo, epsilon_steps=decay, **cell.numbers) for cell in cells]
    return jax.tree.map(lambda *x: jnp.stack([jnp.asarray(v, jnp.float32) for v in x]), *rows)


def cycles(config: Config) -> Iterator[dict[str, int | bool]]:
    """The run's target periods: their idle blocks, their updates, whether they end with a copy."""
    for start in range(0, config.steps, config.target_period):
        length = min(config.target_period, config.steps - start)
        idle = min(max(config.warmup - start, 0), length) // config.train_period
        updates = length // config.train_period - idle
        yield {"idle": idle, "updates": updates, "copy": length == config.target_period}


def start(run: Run) -> RunState:
    """The state before the first step. Equal seeds start alike, whatever their numbers."""
    keys = jnp.stack([jax.random.key(cell.seed) for cell in run.cells])
    state = jax.jit(jax.vmap(run.loop.init))(keys)
    return jax.tree.map(jnp.copy, state)  # no two leaves share a buffer: all are donated


def train(run: Run, state: RunState) -> Iterator[tuple[RunState, Metrics]]:
    """The states and metrics after each target period; the state passed in is used up."""
    programs = {}
    for shape in cycles(run.config):
        key = tuple(shape.values())
        if key not in programs:
            programs[key] = jax.jit(jax.vmap(partial(run.loop.cycle, **shape)), donate_argnums=0)
        state, metrics = programs[key](state, run.hp)
        yield state, jax.tree.map(np.asarray, metrics)
