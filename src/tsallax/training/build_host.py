"""Builds the learner of a host environment from a configuration."""

from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import jax

from tsallax.envs.host import make_host
from tsallax.learners import Learner
from tsallax.learners.parallel_host import ParallelOnHost
from tsallax.learners.replay_host import ReplayOnHost
from tsallax.networks.dense import Network
from tsallax.operators.table import get_row
from tsallax.training.build import rollouts_of, schedule_of, shape_of
from tsallax.training.build_agent import agent_of, check_actions, closed_q
from tsallax.training.config import Config
from tsallax.types import HParams, Masked, allowed_at, bare


def make_on_host(
    config: Config,
    hp: HParams,
    seeds: list[int],
    network: Network | None,
    devices: int,
    own: Any = None,
):
    """Returns the learner, the agent, its observation's spec and the bounds of its actions."""
    if devices > 1:
        raise ValueError("several devices need a compiled environment: see `tsallax list`")
    make_envs = partial(
        own.envs if own else partial(make_host, config.env), timeout=config.env_timeout
    )
    make_envs = partial(make_envs, **config.env_options)
    one = make_envs(n=1)
    box = one.action_box
    check_actions(config, config.env, box)
    if one.gives_masks():
        one.close()
        make_envs = partial(make_envs, masks=True)
        one = make_envs(n=1)
    frame, num_actions = one.observation, len(one.action_names)
    one.close()
    observation = _stacked(frame, config.stack)
    shape = replace(shape_of(config), env="")  # programs do not depend on the environment
    names = tuple(filter(callable, get_row(config.algo)))
    agent = _host_agent(shape, closed_q(hp.q), observation, num_actions, network, names)
    # `vmap` would give a grouped convolution, which is slow on a CPU.
    apart = config.network == "nature" and jax.default_backend() == "cpu"
    given = (lambda n: make_envs(n=n), frame, agent, hp, seeds)
    if config.learner == "parallel":
        learner: Learner = ParallelOnHost(*given, rollouts_of(config), config.stack, apart)
    else:
        learner = ReplayOnHost(*given, schedule_of(config), config.buffer, config.stack, apart)
    return learner, agent, observation, box


def _stacked(frame: Any, stack: int) -> Any:
    """The spec of an observation of `stack` frames; a mask belongs to the last frame."""
    shown, allowed = bare(frame), allowed_at(frame)
    axis = (stack,) if stack else ()
    shown = jax.ShapeDtypeStruct((*axis, *shown.shape), shown.dtype)
    return shown if allowed is None else Masked(shown, allowed)


@lru_cache(maxsize=32)
def _host_agent(config, q, observation, num_actions, network, names) -> Any:
    """The agent, cached by the shape of a run, so that one process compiles its programs once."""
    del names
    return agent_of(config, q, observation, num_actions, network)[0]
