"""The parts shared by both kinds of actor-critics: their weights, and the order of an update."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from tsallax.agents import AgentState, follow
from tsallax.networks.dense import Network, Params
from tsallax.types import HParams


class Weights(NamedTuple):
    """The learned parameters."""

    actor: Params
    critics: tuple[Params, Params]
    log_alpha: Float[Array, ""]  # logarithm of the factor of the number `alpha`


Losses = dict[str, Float[Array, ""]]
Loss = Callable[..., Any]


def start(
    actor: Params, critic: Network, keys: Any, transform: optax.GradientTransformation
) -> AgentState:
    """The initial state: two critics by these keys, and equal frozen copies."""
    critics = critic.init(keys[0]), critic.init(keys[1])
    params = Weights(actor, critics, jnp.zeros(()))
    moments: Any = map(transform.init, params)
    return AgentState(params, critics, Weights(*moments))


def learn(
    state: AgentState,
    hp: HParams,
    transform: optax.GradientTransformation,
    critic_loss: Loss,
    actor_loss: Loss,
    alpha_loss: Loss | None,
) -> tuple[AgentState, Float[Array, ""]]:
    """One step of each optimiser, in the order of Stable-Baselines3; returns the critics' loss.

    Args:
        state: the state before the update.
        hp: the numbers.
        transform: the optimiser.
        critic_loss: the loss of the critics.
        actor_loss: the loss of the actor given the new critics; also returns the entropy.
        alpha_loss: the loss of ln(alpha) given that entropy; None if alpha is fixed.
    """
    old, moments = state.params, state.moments

    def step(params: Any, gradient: Any, moments: Any) -> tuple[Any, Any]:
        step, moments = transform.update(gradient, moments)
        return jax.tree.map(lambda p, d: p - hp.learning_rate * d, params, step), moments

    loss, slope = jax.value_and_grad(critic_loss)(old.critics)
    critics, critic_moments = step(old.critics, slope, moments.critics)
    slope, entropy = jax.grad(actor_loss, has_aux=True)(old.actor, critics)
    actor, actor_moments = step(old.actor, slope, moments.actor)
    log_alpha, alpha_moments = old.log_alpha, moments.log_alpha
    if alpha_loss is not None:
        slope = jax.grad(alpha_loss)(log_alpha, entropy)
        log_alpha, alpha_moments = step(log_alpha, slope, alpha_moments)
    return AgentState(
        Weights(actor, critics, log_alpha),
        follow(state.target_params, critics, hp.tau),
        Weights(actor_moments, critic_moments, alpha_moments),
    ), loss
