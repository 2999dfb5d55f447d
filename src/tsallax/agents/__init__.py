"""An agent is three pure functions over one seed: `init`, `act`, `update`."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, Shaped

from tsallax import operators, policies
from tsallax.networks import Network, Params
from tsallax.operators import Algorithm, action_values
from tsallax.types import Bootstrap, HParams, Policy, Transition

Loss = Literal["squared", "huber"]
Optimiser = Literal["adam", "rmsprop"]
Acting = Literal["pi", "argmax"]

# As torch computes them. RMSprop is MinAtar's: centred, its epsilon outside the root.
OPTIMISERS: dict[str, optax.GradientTransformation] = {
    "adam": optax.scale_by_adam(b1=0.9, b2=0.999, eps=1e-8),
    "rmsprop": optax.scale_by_stddev(decay=0.95, eps=0.01, eps_in_sqrt=False),
}


class Learner(NamedTuple):
    params: Params
    target_params: Params
    moments: Any


class Agent(NamedTuple):
    init: Callable[[PRNGKeyArray], Learner]
    act: Callable[..., Int[Array, ""]]
    update: Callable[..., tuple[Learner, Float[Array, ""]]]
    copy_target: Callable[[Learner], Learner]
    policy: Callable[..., tuple[Float[Array, "A"], Float[Array, "A"]]]  # Q and pi


def make_agent(
    network: Network,
    algorithm: Algorithm,
    *,
    method: policies.Method = "exact",
    optimiser: Optimiser = "adam",
    loss: Loss = "squared",
    acting: Acting = "pi",
    shared_draw: bool = True,
) -> Agent:
    """Algorithm 1 of the paper, without its loop.

    Args:
        network: maps an observation to action values `(A,)` or quantiles `(A, N)`.
        algorithm: a row of the table.
        method: how the Tsallis policy is computed.
        optimiser: `adam` or `rmsprop`.
        loss: of a scalar head; quantiles have the quantile Huber loss.
        acting: epsilon-greedy over a sample of pi, or over argmax Q.
        shared_draw: SAL draws once an update (True) or once a sample.
    """
    tsallis = policies.make_policy(method)
    own_policy: Policy = algorithm.policy or tsallis
    transform = OPTIMISERS[optimiser]
    error_loss = {"squared": operators.squared, "huber": operators.huber}[loss]

    def init(key: PRNGKeyArray) -> Learner:
        params = network.init(key)
        return Learner(params, params, transform.init(params))

    def values(params: Params, observation: Shaped[Array, "..."]) -> Float[Array, "A"]:
        return action_values(network.apply(params, observation))

    def policy(
        params: Params, observation: Shaped[Array, "..."], hp: HParams
    ) -> tuple[Float[Array, "A"], Float[Array, "A"]]:
        """Action values and the policy, normalised."""
        Q = values(params, observation)
        return Q, policies.normalise(own_policy(Q, hp), Q)

    def act(
        params: Params,
        observation: Shaped[Array, "..."],
        epsilon: Float[Array, ""],
        hp: HParams,
        key: PRNGKeyArray,
    ) -> Int[Array, ""]:
        if acting == "pi":
            _, pi = policy(params, observation, hp)
        else:
            Q = values(params, observation)
            pi = jax.nn.one_hot(jnp.argmax(Q), Q.shape[0])
        return policies.sample(key, policies.epsilon_greedy(pi, epsilon))

    def targets(target_params: Params, batch: Transition, hp: HParams, key: PRNGKeyArray):
        """The bootstrap targets of a batch, by the algorithm's own function."""
        apply = jax.vmap(network.apply, (None, 0))
        Z = apply(target_params, batch.observation)
        Z_next = apply(target_params, batch.next_observation)
        size = batch.reward.shape[0]
        keys = jnp.broadcast_to(key, (size,)) if shared_draw else jax.random.split(key, size)
        discount = hp.gamma * (1 - batch.terminated.astype(jnp.float32))
        Q = jax.vmap(action_values)(Z)
        x = Bootstrap(Q, batch.action, batch.reward, discount, Z_next, keys)
        return jax.vmap(algorithm.target, (0, None, None))(x, hp, tsallis)

    def update(
        learner: Learner, batch: Transition, hp: HParams, key: PRNGKeyArray
    ) -> tuple[Learner, Float[Array, ""]]:
        y = targets(learner.target_params, batch, hp, key)

        def batch_loss(params):
            Z = jax.vmap(network.apply, (None, 0))(params, batch.observation)
            chosen = jax.vmap(lambda Z, a: Z[a])(Z, batch.action)
            if chosen.ndim == 1:
                return jnp.mean(error_loss(y - chosen))
            return jnp.mean(jax.vmap(operators.quantile_huber)(chosen, y))

        loss_value, gradient = jax.value_and_grad(batch_loss)(learner.params)
        scale = jnp.minimum(1, hp.max_grad_norm / optax.tree.norm(gradient))
        gradient = jax.tree.map(lambda g: g * scale, gradient)
        step, moments = transform.update(gradient, learner.moments)
        params = jax.tree.map(lambda p, d: p - hp.learning_rate * d, learner.params, step)
        return Learner(params, learner.target_params, moments), loss_value

    def copy_target(learner: Learner) -> Learner:
        return learner._replace(target_params=learner.params)

    return Agent(init, act, update, copy_target, policy)
