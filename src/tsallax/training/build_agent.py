"""From a configuration to an agent: the network, and the algorithm's row of the table."""

import math
from typing import Any

import jax
import numpy as np

from tsallax.agents import make_agent
from tsallax.agents.actor_critic import ActorAgent, make_actor_critic
from tsallax.agents.discrete_actor import make_discrete_actor
from tsallax.networks.dense import Network, is_image, make_network, mlp, output_shape
from tsallax.operators.table import ACTOR_CRITICS, ALGORITHMS, get_algorithm
from tsallax.training.config import CLOSED, Config, agent_kind
from tsallax.training.resolve import check_kind
from tsallax.types import Box, Number, allowed_at, bare


def clips_gradient(config: Config) -> bool:
    return any(map(math.isfinite, config.max_grad_norm or ()))


def closed_q(q: Number) -> float | None:
    """The q of all cells, if they share one for which the policy has a closed form."""
    found = set(np.atleast_1d(np.asarray(q)).tolist())
    return found.pop() if len(found) == 1 and found <= CLOSED else None


def agent_of(
    config: Config,
    q: float | None,
    observation: Any,
    num_actions: int,
    network: Network | None,
) -> tuple[Any, tuple[int, ...]]:
    """The agent, and the shape of its network's output. The observation may be `Masked`."""
    masks, observation = allowed_at(observation) is not None, bare(observation)
    if masks and agent_kind(config) != "value agent":
        raise ValueError(f"{config.env} rules actions out, which {config.algo} cannot: take tal")
    if agent_kind(config) == "continuous actor":
        return actor_of(config, observation, num_actions, network), ()
    if network is None:
        if config.network == "own":
            raise ValueError("this run has a network of its own: give it in Python, as `network`")
        head = (num_actions, *((config.quantiles,) if config.head == "quantile" else ()))
        network = make_network(
            config.network,
            observation.shape,
            head,
            config.hidden,
            stacked=bool(config.stack),
            layer_norm=config.layer_norm,
            dueling=bool(config.dueling),
        )
    head = output_shape(network, observation)
    if len(head) not in (1, 2) or head[0] != num_actions:
        raise ValueError(
            f"the network's output has the shape {head}; {config.env} needs ({num_actions},), "
            f"or ({num_actions}, quantiles)"
        )
    how = {"q": q, "optimiser": config.optimiser, "optimiser_eps": config.optimiser_eps}
    if config.actor:
        if len(head) > 1:
            raise ValueError(f"{config.algo} has action values, no quantiles: {head}")
        row, given = ALGORITHMS[ACTOR_CRITICS[config.algo].discrete], config.automatic_alpha
        agent = make_discrete_actor(network, row, actor=config.actor, automatic_alpha=given, **how)
        return agent, ()
    agent = make_agent(
        network,
        get_algorithm(config.algo),
        method=config.policy,
        loss=config.loss,
        acting=config.acting,
        shared_draw=config.sal_draw == "update",
        clip_gradient=clips_gradient(config),
        double=bool(config.double),
        polyak=config.tau is not None,
        masks=masks,
        **how,
    )
    return agent, head


def actor_of(
    config: Config,
    observation: jax.ShapeDtypeStruct,
    dimensions: int,
    network: Network | None,
) -> ActorAgent:
    frame = observation.shape[bool(config.stack) :]
    if network is not None or is_image(frame, observation.dtype):
        what = "no network of your own" if network else f"no images {frame}"
        raise ValueError(f"{config.algo} takes vectors of numbers, and {what}")
    how = {"hidden": config.hidden, "layer_norm": config.layer_norm}
    return make_actor_critic(
        mlp(observation.shape, (2, dimensions), **how),
        mlp((math.prod(observation.shape) + dimensions,), (1,), **how),
        ACTOR_CRITICS[config.algo],
        dimensions,
        density=config.density,
        automatic_alpha=config.automatic_alpha,
        baseline_actions=config.baseline_actions,
        optimiser=config.optimiser,
        optimiser_eps=config.optimiser_eps,
    )


def check_actions(config: Config, env_id: str, box: Box | None) -> None:
    """Refuse an algorithm for the other kind of actions."""
    check_kind(config.algo, env_id, box is not None)
    if box is not None and agent_kind(config) == "discrete actor":
        raise ValueError(f"{env_id} has continuous actions: register it and give its name")
