"""Builds the agent of an actor-critic from a configuration."""

import math

import jax

from tsallax.agents.actor_critic import ActorAgent, make_actor_critic
from tsallax.agents.discrete_actor import DiscreteActor, make_discrete_actor
from tsallax.networks.dense import Network, is_image, mlp
from tsallax.operators.actor_critics import ACTOR_CRITICS
from tsallax.operators.table import ALGORITHMS
from tsallax.training.config import Config


def discrete_actor(config: Config, q: float | None, network: Network) -> DiscreteActor:
    """A discrete actor; it and each of its critics have a copy of `network`."""
    return make_discrete_actor(
        network,
        ALGORITHMS[ACTOR_CRITICS[config.algo].discrete],
        q=q,
        actor=config.actor,
        automatic_alpha=config.automatic_alpha,
        optimiser=config.optimiser,
        optimiser_eps=config.optimiser_eps,
    )


def continuous_actor(
    config: Config,
    observation: jax.ShapeDtypeStruct,
    dimensions: int,
    network: Network | None,
) -> ActorAgent:
    frame = observation.shape[bool(config.stack) :]
    if network is not None or is_image(frame, observation.dtype):
        what = "not a custom network" if network else f"not images {frame}"
        raise ValueError(f"{config.algo} takes vectors of numbers, {what}")
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
