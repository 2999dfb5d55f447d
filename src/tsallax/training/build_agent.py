"""Builds an agent from a configuration: the network, and the algorithm's row of the table."""

import math
from typing import Any

import numpy as np

from tsallax.agents import make_agent
from tsallax.networks.dense import Network, make_network, output_shape
from tsallax.operators.table import get_algorithm
from tsallax.training.build_actor import continuous_actor, discrete_actor
from tsallax.training.config import CLOSED, Config, agent_kind
from tsallax.training.resolve import check_kind
from tsallax.types import Box, Number, allowed_at, bare


def clips_gradient(config: Config) -> bool:
    return any(map(math.isfinite, config.max_grad_norm or ()))


def closed_q(q: Number) -> float | None:
    """The q of all cells if it is the same and its policy has a closed form, else None."""
    found = set(np.atleast_1d(np.asarray(q)).tolist())
    return found.pop() if len(found) == 1 and found <= CLOSED else None


def agent_of(
    config: Config,
    q: float | None,
    observation: Any,
    num_actions: int,
    network: Network | None,
) -> tuple[Any, tuple[int, ...]]:
    """Returns the agent and its network's output shape. The observation may be `Masked`."""
    kind, masks = agent_kind(config), allowed_at(observation) is not None
    observation = bare(observation)
    if masks and kind != "value agent":
        raise ValueError(
            f"{config.env} has actions that are not always allowed, which {config.algo} does not "
            "support: use a value algorithm, such as tal"
        )
    if kind == "continuous actor":
        return continuous_actor(config, observation, num_actions, network), ()
    network = network or _named_network(config, observation.shape, num_actions)
    head = output_shape(network, observation)
    if len(head) not in (1, 2) or head[0] != num_actions:
        raise ValueError(
            f"the network's output has the shape {head}; {config.env} needs ({num_actions},), "
            f"or ({num_actions}, quantiles)"
        )
    if kind == "discrete actor":
        if len(head) > 1:
            raise ValueError(f"{config.algo} needs action values, not quantiles: {head}")
        return discrete_actor(config, q, network), ()
    agent = make_agent(
        network,
        get_algorithm(config.algo),
        method=config.policy,
        q=q,
        optimiser=config.optimiser,
        optimiser_eps=config.optimiser_eps,
        loss=config.loss,
        acting=config.acting,
        shared_draw=config.sal_draw == "update",
        clip_gradient=clips_gradient(config),
        double=bool(config.double),
        polyak=config.tau is not None,
        masks=masks,
    )
    return agent, head


def _named_network(config: Config, observation: tuple[int, ...], num_actions: int) -> Network:
    if config.network == "own":
        raise ValueError("this run has a custom network: give it in Python, as `network`")
    return make_network(
        config.network,
        observation,
        (num_actions, *((config.quantiles,) if config.head == "quantile" else ())),
        config.hidden,
        stacked=bool(config.stack),
        layer_norm=config.layer_norm,
        dueling=bool(config.dueling),
    )


def check_actions(config: Config, env_id: str, box: Box | None) -> None:
    """Refuse an algorithm that does not support the environment's kind of actions."""
    check_kind(config.algo, env_id, box is not None)
    if box is not None and agent_kind(config) == "discrete actor":
        raise ValueError(f"{env_id} has continuous actions: register it and give its name")
