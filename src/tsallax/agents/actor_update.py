"""What actor-critics of both kinds of actions share: their weights, and the order of an update."""

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
    """What is learned."""

    actor: Params
    critics: tuple[Params, Params]
    log_alpha: Float[Array, ""]  # of alpha as a multiple of the number `alpha`


Losses = dict[str, Float[Array, ""]]
Loss = Callable[..., Any]


def start(
    actor: Params, critic: Network, keys: Any, transform: optax.GradientTransformation
) -> AgentState:
    """The first state: two critics by these keys, which their frozen copies equal."""
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
    """One step of each optimiser, in the order of Stable-Baselines3; the critics' loss.

    Args:
        state: before it.
        hp: the numbers.
        transform: the optimiser.
        critic_loss: of the critics.
        actor_loss: of the actor, by the new critics; and what the entropy was.
        alpha_loss: of the logarithm of alpha, by that entropy; None where alpha is fixed.
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
