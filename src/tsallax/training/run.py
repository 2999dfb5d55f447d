"""A run: a configuration becomes functions. Which loop is behind them does not show."""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from tsallax import envs
from tsallax.agents import Agent, make_agent
from tsallax.envs.base import Environment
from tsallax.envs.host import HostEnvs
from tsallax.networks import Network, Params, minatar_conv, mlp, nature
from tsallax.operators import get_algorithm, make_hparams
from tsallax.replay import make_ring
from tsallax.training import compiled, freeze
from tsallax.training.config import CLOSED, RANGES, Config, grid
from tsallax.training.evaluate import evaluate
from tsallax.training.host import HostLoop
from tsallax.training.loop import Loop, Metrics, Schedule, make_loop
from tsallax.training.tensors import Spec, header
from tsallax.types import HParams, Number

MOST_ACTIONS = 128  # the ring on the device stores one in a byte
NETWORKS = {"mlp": mlp, "minatar-conv": minatar_conv, "nature": nature}


class Cell(NamedTuple):
    """One column of the run: a seed with its numbers."""

    seed: int
    numbers: dict[str, float]

    def label(self, names: list[str]) -> str:
        return " ".join([f"seed {self.seed}", *(f"{n}={self.numbers[n]:g}" for n in names)])


class Run(NamedTuple):
    """The leading axis of every array is the cells."""

    config: Config
    cells: list[Cell]
    agent: Agent
    hp: HParams
    observation: jax.ShapeDtypeStruct
    start: Callable[[], Any]  # the state before the first step
    train: Callable[..., Iterator[tuple[Any, Metrics]]]  # (state, tick) -> after each period
    evaluate: Callable[..., Float[np.ndarray, "cells episodes"]]  # (params, episodes, greedy, seed)
    freeze: Callable[[Any], tuple[dict[str, np.ndarray], dict[str, Any]]]  # arrays, and what else
    specs: Callable[[dict[str, Any]], dict[str, Spec]]  # of arrays with this `else`
    thaw: Callable[[dict[str, np.ndarray], dict[str, Any]], Any]  # the state again

    @property
    def params(self) -> Params:
        """The shapes of all cells' parameters."""
        keys = jax.random.split(jax.random.key(0), len(self.cells))
        return jax.eval_shape(jax.vmap(self.agent.init), keys).params


def check_memory(run: Run) -> None:
    """Refuse what this machine cannot hold, or no file, before anything is allocated."""
    expected = run.specs({})
    header(expected)
    needed = sum(spec.nbytes for spec in expected.values())
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > there:
        raise ValueError(
            f"this run needs {needed / 1e9:,.1f} GB, the machine has {there / 1e9:,.1f}: "
            "fewer seeds, or a smaller buffer or network"
        )


def make_network(config: Config, observation: jax.ShapeDtypeStruct, num_actions: int) -> Network:
    if config.network == "own":
        raise ValueError("this run has a network of its own: give it in Python, as `network`")
    head = (num_actions, *((config.quantiles,) if config.head == "quantile" else ()))
    make, shape = NETWORKS[config.network], observation.shape
    if config.network == "mlp":
        return make(shape, head, config.hidden)
    image = (*shape[1:3], shape[0] * math.prod(shape[3:])) if config.stack else shape
    if len(image) != 3:
        raise ValueError(f"{config.env} gives no images with channels: --network mlp would do")
    network = make(image, head, config.hidden)
    return stacked(network) if config.stack else network


def stacked(network: Network) -> Network:
    """For stacks of frames `(frames, height, width, ...)`: frames become channels."""

    def apply(params, x):
        return network.apply(params, jnp.moveaxis(x, 0, 2).reshape(*x.shape[1:3], -1))

    return Network(network.init, apply)


def make_run(config: Config, network: Network | None = None, devices: int = 1) -> Run:
    """The functions of a resolved configuration.

    Args:
        config: the configuration.
        network: a user's own pair, if it is not the configuration's.
        devices: of this host, among which the cells of a compiled run are shared out.
    """
    if config.loop == "compiled":
        return compiled_run(config, network, devices)
    if devices > 1:
        raise ValueError("several devices are for environments that are compiled: `tsallax list`")
    return host_run(config, network)


def compiled_run(config: Config, network: Network | None = None, devices: int = 1) -> Run:
    cells = make_cells(config)
    check_devices(len(cells), devices)
    hp = stack_hparams(config, cells)
    row = get_algorithm(config.algo)
    named = envs.CONSTRUCTORS.get(config.env), row.target, row.policy
    env, observation, agent, loop = compiled_parts(shape_of(config), closed_q(hp.q), network, named)
    start = partial(compiled.start, loop, np.array([cell.seed for cell in cells]))
    return Run(
        config,
        cells,
        agent,
        hp,
        observation,
        start,
        train=partial(compiled.train, loop, config, hp, devices=devices, time_limit=env.time_limit),
        evaluate=partial(evaluate, env, agent, hp),
        freeze=lambda state: (freeze.freeze(state), {}),
        specs=lambda about: freeze.specs(jax.eval_shape(start)),
        thaw=lambda arrays, about: freeze.thaw(jax.eval_shape(start), arrays),
    )


def check_devices(cells: int, devices: int) -> None:
    there = jax.local_device_count()
    if not 1 <= devices <= there:
        raise ValueError(f"devices must be 1 to {there}, the number there is here, not {devices}")
    if cells % devices:
        raise ValueError(f"{cells} runs side by side cannot be shared out to {devices} devices")


@lru_cache(maxsize=32)
def compiled_parts(
    config: Config, q: float | None, network: Network | None, named: tuple[Any, ...]
) -> tuple[Environment, jax.ShapeDtypeStruct, Agent, Loop]:
    """What runs of the same shape share, so that one process compiles it once.

    `named` is what the names of the configuration stand for: in a notebook that may change.
    """
    del named
    env = envs.make(config.env, **config.env_options)
    if env.num_actions > MOST_ACTIONS:
        raise ValueError(f"{env.id} has {env.num_actions} actions; {MOST_ACTIONS} can be stored")
    observation = jax.eval_shape(lambda key: env.observe(env.reset(key)), jax.random.key(0))
    network = network or make_network(config, observation, env.num_actions)
    agent = own_agent(config, q, observation, env.num_actions, network)
    # The values of every stored state are kept; their quantiles would fill the memory.
    reuse = len(head_of(network, observation)) == 1
    schedule = Schedule(
        config.batch, config.train_period, bool(config.clip_rewards), reuse, config.updates
    )
    loop = make_loop(env, agent, make_ring(config.buffer, env.time_limit), schedule)
    return env, observation, agent, loop


def shape_of(config: Config) -> Config:
    """Without what the compiled program is given: numbers, seeds and how long it runs.

    Of the bound on the gradient, whether there is one.
    """
    clipped = any(map(math.isfinite, config.max_grad_norm))
    own = {"seeds": 1, "first_seed": 0, "steps": 1, "tag": ""}
    own["max_grad_norm"] = (1.0 if clipped else math.inf,)
    return replace(config, **{**dict.fromkeys(RANGES, ()), **own})


def host_run(config: Config, network: Network | None = None) -> Run:
    cells = make_cells(config)
    hp = stack_hparams(config, cells)

    def make_envs(n: int) -> HostEnvs:
        return envs.make_host(config.env, n, config.env_timeout, **config.env_options)

    one = make_envs(1)
    frame, num_actions = one.observation, len(one.action_names)
    one.close()
    stack = (config.stack,) if config.stack else ()
    observation = jax.ShapeDtypeStruct((*stack, *frame.shape), frame.dtype)
    network = network or make_network(config, observation, num_actions)
    agent = own_agent(config, closed_q(hp.q), observation, num_actions, network)
    loop = HostLoop(make_envs, frame, agent, hp, [cell.seed for cell in cells], config)
    return Run(
        config,
        cells,
        agent,
        hp,
        observation,
        loop.start,
        loop.train,
        loop.evaluate,
        freeze=lambda state: (state.freeze(), state.about()),
        specs=loop.specs,
        thaw=loop.thaw,
    )


def closed_q(q: Number | Sequence[float]) -> float | None:
    """The q of all cells, if they have one for which the policy has a closed form."""
    found = set(np.asarray(q).tolist())
    return found.pop() if len(found) == 1 and found <= CLOSED else None


def own_agent(
    config: Config,
    q: float | None,
    observation: jax.ShapeDtypeStruct,
    num_actions: int,
    network: Network,
) -> Agent:
    head = head_of(network, observation)
    if len(head) not in (1, 2) or head[0] != num_actions:
        raise ValueError(
            f"the network's output has the shape {head}; {config.env} needs ({num_actions},), "
            f"or ({num_actions}, quantiles)"
        )
    return make_agent(
        network,
        get_algorithm(config.algo),
        method=config.policy,
        q=q,
        optimiser=config.optimiser,
        optimiser_eps=config.optimiser_eps,
        loss=config.loss,
        acting=config.acting,
        shared_draw=config.sal_draw == "update",
        clip_gradient=any(map(math.isfinite, config.max_grad_norm)),
    )


def head_of(network: Network, observation: jax.ShapeDtypeStruct) -> tuple[int, ...]:
    """The shape of a network's output."""

    def output(key, x):
        return network.apply(network.init(key), x)

    return jax.eval_shape(output, jax.random.key(0), observation).shape


def make_cells(config: Config) -> list[Cell]:
    seeds = range(config.first_seed, config.first_seed + config.seeds)
    return [Cell(seed, numbers) for numbers in grid(config) for seed in seeds]


def stack_hparams(config: Config, cells: list[Cell]) -> HParams:
    exploration = {
        "epsilon_steps": config.epsilon_fraction * config.steps,
        "random_steps": config.warmup if config.random_warmup else 0,
    }
    rows = [make_hparams(config.algo, **exploration, **cell.numbers) for cell in cells]
    return jax.tree.map(lambda *x: jnp.stack([jnp.asarray(v, jnp.float32) for v in x]), *rows)
