"""Builds a learner from a configuration: the one place where the parts are put together."""

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from tsallax import envs
from tsallax.learners import (
    AnyAgent,
    Learner,
    Schedule,
    parallel_device,
    parallel_update,
    replay_device,
)
from tsallax.learners.device import DeviceLearner, check_devices
from tsallax.networks.dense import Network
from tsallax.operators.table import (
    get_row,
    make_hparams,
)
from tsallax.replay.ring import make_ring
from tsallax.storage.tensors import header
from tsallax.training.build_agent import agent_of, check_actions, clips_gradient, closed_q
from tsallax.training.config import (
    NUMBERS,
    Config,
    grid,
    in_effect,
    varied,
)
from tsallax.types import Box, Environment, HParams

MOST_ACTIONS = 128  # the replay on the device stores an action as int8


class Cell(NamedTuple):
    """One column of a run: a seed with its numbers."""

    seed: int
    numbers: dict[str, float]

    def label(self, names: list[str]) -> str:
        return " ".join([f"seed {self.seed}", *(f"{n}={self.numbers[n]:g}" for n in names)])


class Run(NamedTuple):
    """A configuration and what is built from it. The leading axis of every array is the cells."""

    config: Config
    cells: list[Cell]
    learner: Learner
    agent: AnyAgent
    hp: HParams
    observation: Any  # its shape and dtype; a `Masked` of them if it comes with a mask
    action_box: Box | None = None  # of continuous actions

    @property
    def labels(self) -> list[str]:
        return [cell.label(varied(self.config)) for cell in self.cells]


def make_run(
    config: Config,
    network: Network | None = None,
    devices: int = 1,
    beside: Sequence[Config] = (),
    env: Any = None,
) -> Run:
    """Build the learner of a resolved configuration.

    Args:
        config: the configuration.
        network: a user's own `(init, apply)` pair; by default the configuration's network.
        devices: number of devices of this host, which share the cells of a compiled run.
        beside: configurations with the same `program_of`, whose cells follow in the same program.
        env: a user's own environment (`envs.own`); by default the configuration's.
    """
    envs.check_own(config.env, env)
    if any(program_of(one) != program_of(config) for one in beside):
        raise ValueError("configurations side by side must have one shape, duration and warm-up")
    each = [(one, make_cells(one)) for one in (config, *beside)]
    cells = [cell for _, own in each for cell in own]
    hp = jax.tree.map(lambda *x: jnp.concatenate(x), *(stack_hparams(*one) for one in each))
    seeds = [cell.seed for cell in cells]
    if config.loop == "compiled":
        make = _on_device
    else:
        from tsallax.training.build_host import make_on_host as make
    learner, agent, observation, box = make(config, hp, seeds, network, devices, env)
    return Run(config, cells, learner, agent, hp, observation, box)


def _on_device(
    config: Config,
    hp: HParams,
    seeds: list[int],
    network: Network | None,
    devices: int,
    own: Environment | None,
):
    check_devices(len(seeds), devices)
    names = envs.CONSTRUCTORS.get(config.env), *filter(callable, get_row(config.algo))
    shape = shape_of(config)
    env, observation, agent, loop = _device_parts(shape, closed_q(hp.q), network, own, names)
    if config.learner == "parallel":
        periods = partial(parallel_update.plan, rollouts_of(config))
    else:
        periods = partial(replay_device.plan, schedule_of(config))
    copies = config.num_envs or 1
    learner = DeviceLearner(loop, periods, env, agent, hp, seeds, devices, copies)
    return learner, agent, observation, env.action_box


@lru_cache(maxsize=32)
def _device_parts(
    config: Config,
    q: float | None,
    network: Network | None,
    own: Environment | None,
    names: tuple[Any, ...],
) -> tuple[Environment, Any, Any, Any]:
    """The parts that runs of the same shape share, so that one process compiles them once.

    `names` are the objects behind the names in the configuration, which may change in a notebook.
    """
    del names
    if own and config.env_options:
        raise ValueError(f"{config.env} has no option {', '.join(config.env_options)}")
    env = envs.ready(own or envs.make(config.env, **config.env_options))
    check_actions(config, env.id, env.action_box)
    if env.num_actions > MOST_ACTIONS:
        raise ValueError(f"{env.id} has {env.num_actions} actions; {MOST_ACTIONS} can be stored")
    observation = jax.eval_shape(lambda key: env.observe(env.reset(key)), jax.random.key(0))
    agent, head = agent_of(config, q, observation, env.num_actions, network)
    if config.learner == "parallel":
        return env, observation, agent, parallel_device.make_loop(env, agent, rollouts_of(config))
    dimensions = env.num_actions if env.action_box else None
    ring, schedule = make_ring(config.buffer, env.time_limit, dimensions), schedule_of(config)
    # Cached values need a target network that is constant within a period, and draws known in
    # advance. They are kept for every stored state; quantiles would take too much memory.
    reuse = len(head) == 1 and config.tau is None and not config.prioritised
    loop = replay_device.make_loop(env, agent, ring, schedule, reuse)
    return env, observation, agent, loop


def schedule_of(config: Config) -> Schedule:
    """The schedule of a configuration, whose fields have the same names."""
    return Schedule(*(in_effect(config, name) for name in Schedule._fields))


def rollouts_of(config: Config) -> parallel_update.Rollouts:
    """The shape of the parallel learner's rollouts."""
    return parallel_update.Rollouts(
        config.steps,
        config.num_envs,
        config.rollout,
        config.epochs,
        config.minibatches,
        config.target_period,
        config.clip_rewards,
        config.frozen_bonus,
    )


def shape_of(config: Config) -> Config:
    """The configuration without the arguments of its compiled program: numbers, seeds, duration.

    Of the gradient's norm bound and of tau it keeps whether there is one.
    """
    own = {"seeds": 1, "first_seed": 0, "steps": 0, "warmup": 0, "tag": "", "random_warmup": False}
    own |= {"save_seconds": 0.0, "save_steps": 0, "eval_every": 0, "epsilon_fraction": 0.0}
    own |= {"schedule_steps": None, "keep_state": 0.0}
    own |= {"eval_episodes": 0, "eval_acting": "pi", "stop_at": None}
    own |= {"init_from": "", "init_weights": "best", "init_cell": None}
    own["max_grad_norm"] = (1.0 if clips_gradient(config) else math.inf,)
    own |= {"tau": None} if config.tau is None else {}
    return replace(config, **{**dict.fromkeys(NUMBERS, ()), **own})


def program_of(config: Config) -> tuple[Config, int, int]:
    """The properties that all cells of one program share: its shape, duration and warm-up."""
    return shape_of(config), config.steps, config.warmup or 0


def make_cells(config: Config) -> list[Cell]:
    """Every combination of the numbers with every seed, each with all its values in effect."""
    seeds = range(config.first_seed, config.first_seed + config.seeds)
    every = [
        {"k": 1.0 if numbers["q"] == 1 else 0.5, "log_weight": numbers["alpha"], **numbers}
        for numbers in grid(config)
    ]
    return [Cell(seed, numbers) for numbers in every for seed in seeds]


def stack_hparams(config: Config, cells: list[Cell]) -> HParams:
    length = config.schedule_steps or config.steps
    schedule = {
        "epsilon_steps": config.epsilon_fraction * length,
        "random_steps": config.warmup if config.random_warmup else 0,
        "total_steps": length,
    }
    rows = [make_hparams(config.algo, **schedule, **cell.numbers) for cell in cells]
    return jax.tree.map(lambda *x: jnp.asarray(np.array(x, np.float32)), *rows)


def check_memory(run: Run) -> None:
    """Refuse a run whose state exceeds this machine's memory or a file, before allocating it."""
    expected = run.learner.layout({})
    header(expected)
    needed, there = sum(spec.nbytes for spec in expected.values()), memory()
    if there and needed > there:
        raise ValueError(
            f"this run needs {needed / 1e9:,.1f} GB, the machine has {there / 1e9:,.1f}: "
            "fewer seeds, or a smaller buffer or network"
        )


def memory() -> int:
    """The size of this machine's memory in bytes; 0 if it is unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0
