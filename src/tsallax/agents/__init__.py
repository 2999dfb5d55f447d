"""An agent: pure functions over one seed, such as `init`, `act` and `update`."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from tsallax.agents.rmsprop import centred_rmsprop
from tsallax.networks.dense import Network, Params
from tsallax.networks.masked import masked
from tsallax.operators.returns import n_step, onward
from tsallax.operators.table import Algorithm, one_step
from tsallax.operators.targets import action_values, huber, quantile_huber, squared
from tsallax.policies.closed import epsilon_greedy, normalise, rule_out, ruling_out, sample
from tsallax.policies.tsallis import Method, make_policy
from tsallax.types import (
    Bootstrap,
    HParams,
    Policy,
    Seen,
    Segment,
    Traced,
    Transition,
    allowed_at,
)

OPTIMISERS: dict[str, Callable[..., optax.GradientTransformation]] = {
    "adam": optax.scale_by_adam,
    "radam": optax.scale_by_radam,  # its first steps are short: the step size needs no warm-up
    "rmsprop": centred_rmsprop,  # MinAtar's
}
LOSSES = {"squared": squared, "huber": huber}
ACTING = ("pi", "argmax")


class AgentState(NamedTuple):
    """The learned state of an agent: its network, the frozen copy, the optimiser's moments."""

    params: Params
    target_params: Params
    moments: Any


class Agent(NamedTuple):
    init: Callable[[PRNGKeyArray], AgentState]
    act: Callable[..., Int[Array, ""]]  # (params, observation, epsilon, hp, key)
    behaviour: Callable[..., Float[Array, "A"]]  # (Q, hp): what `act` mixes with uniform actions
    update: Callable[..., tuple[AgentState, Float[Array, ""]]]  # (state, batch, hp, key, cached)
    weighted_update: Callable[..., Any]  # (state, batch, hp, key, weights): also returns the errors
    fit: Callable[..., tuple[AgentState, Float[Array, ""]]]  # (state, observations, actions, y, hp)
    copy_target: Callable[[AgentState], AgentState]
    policy: Callable[..., tuple[Float[Array, "A"], Float[Array, "A"]]]  # Q and pi
    atoms: Callable[..., Float[Array, "batch A *N"]]  # the network on a batch
    value: Callable[..., Float[Array, "*N"]]  # (Z, hp): the algorithm's value at one state
    bonus: Callable[..., Float[Array, ""]]  # (x, hp): the algorithm's bonus of one transition


def follow(frozen: Params, params: Params, tau: Traced) -> Params:
    """`t + tau (p - t)`: moves the frozen copy a step `tau` towards the network."""
    return jax.tree.map(lambda t, p: t + tau * (p - t), frozen, params)


def make_agent(
    network: Network,
    algorithm: Algorithm,
    *,
    method: Method = "exact",
    q: float | None = None,
    optimiser: str = "adam",
    optimiser_eps: float | None = None,
    loss: str = "squared",
    acting: str = "pi",
    shared_draw: bool = True,
    clip_gradient: bool = True,
    double: bool = False,
    polyak: bool = False,
    masks: bool = False,
) -> Agent:
    """Algorithm 1 of the paper, without its loop.

    Args:
        network: maps an observation to action values `(A,)` or quantiles `(A, N)`.
        algorithm: a row of the table.
        method: how the Tsallis policy is computed.
        q: replaces `hp.q`, see `make_policy`.
        optimiser: `adam`, `radam` or `rmsprop`.
        optimiser_eps: added to the root of the second moment; the optimiser's default if None.
        loss: `squared` or `huber`, for a scalar head; quantiles use the quantile Huber loss.
        acting: epsilon-greedy over a sample of `pi`, or over `argmax` Q.
        shared_draw: SAL draws once per update (True) or once per sample.
        clip_gradient: to `max_grad_norm`; False, if that is infinite, saves computing the norm.
        double: the policy at s' is that of the network, the atoms are those of the frozen copy.
        polyak: the frozen copy moves by `hp.tau` towards the network at every update, instead of
            being replaced.
        masks: observations are `Masked`, as some actions are not allowed.
    """
    for name, table in ((optimiser, OPTIMISERS), (loss, LOSSES), (acting, ACTING)):
        if name not in table:
            raise ValueError(f"there is no {name!r}: one of {', '.join(table)}")
    tsallis = make_policy(method, q)
    own_policy: Policy = algorithm.policy or tsallis
    if masks:
        network, tsallis, own_policy = masked(network), ruling_out(tsallis), ruling_out(own_policy)
    transform = OPTIMISERS[optimiser](**({} if optimiser_eps is None else {"eps": optimiser_eps}))
    error_loss = LOSSES[loss]

    def init(key: PRNGKeyArray) -> AgentState:
        params = network.init(key)
        return AgentState(params, params, transform.init(params))

    def values(params: Params, observation: Seen) -> Float[Array, "A"]:
        return action_values(network.apply(params, observation))

    def policy(
        params: Params, observation: Seen, hp: HParams
    ) -> tuple[Float[Array, "A"], Float[Array, "A"]]:
        """Action values, -inf for an action that is not allowed, and the policy, normalised."""
        Q = values(params, observation)
        Q = rule_out(Q) if masks else Q
        return Q, normalise(own_policy(Q, hp), Q)

    def act(
        params: Params,
        observation: Seen,
        epsilon: Float[Array, ""],
        hp: HParams,
        key: PRNGKeyArray,
    ) -> Int[Array, ""]:
        pi = behaviour(values(params, observation), hp)
        return sample(key, epsilon_greedy(pi, epsilon, allowed_at(observation)))

    def behaviour(Q: Float[Array, "A"], hp: HParams) -> Float[Array, "A"]:
        if acting == "pi":
            return normalise(own_policy(Q, hp), Q)
        return jax.nn.one_hot(jnp.argmax(Q), Q.shape[0])

    def atoms(params: Params, observations: Seen):
        """Action values or their quantiles, for a batch of observations."""
        every = network.batch or jax.vmap(network.apply, (None, 0))
        return every(params, observations)

    def targets(
        state: AgentState,
        batch: Transition | Segment,
        hp: HParams,
        key: PRNGKeyArray,
        cached: tuple[Array, Array] | None,
    ) -> Float[Array, "batch *N"]:
        """The bootstrap targets of a batch, by the algorithm's own functions."""
        shape = batch.reward.shape
        keys = jnp.broadcast_to(key, shape) if shared_draw else jax.random.split(key, shape)
        discount = hp.gamma * (1 - batch.terminated.astype(jnp.float32))
        frozen, online = partial(atoms, state.target_params), partial(values, state.params)
        Q_next = jax.vmap(online)(batch.next_observation) if double else None
        if isinstance(batch, Segment):
            seen, last = batch.observation, batch.next_observation
            Z, Z_last = cached or (jax.vmap(frozen)(seen), frozen(last))
            Q, Z_next = jax.vmap(jax.vmap(action_values))(Z), jax.vmap(onward)(Z, Z_last, batch.cut)
            x = Bootstrap(Q, batch.action, batch.reward, discount, Z_next, keys)
            several = jax.vmap(n_step(algorithm), (0, 0, None, None, 0))
            return several(x, batch.cut, hp, tsallis, Q_next)
        Z, Z_next = cached or map(frozen, (batch.observation, batch.next_observation))
        Q = jax.vmap(action_values)(Z)
        x = Bootstrap(Q, batch.action, batch.reward, discount, Z_next, keys)
        return jax.vmap(one_step(algorithm), (0, None, None, 0))(x, hp, tsallis, Q_next)

    def update(
        state: AgentState,
        batch: Transition | Segment,
        hp: HParams,
        key: PRNGKeyArray,
        cached: tuple[Array, Array] | None = None,
    ) -> tuple[AgentState, Float[Array, ""]]:
        """One optimiser step; `cached` holds the target network's atoms at s and s'."""
        y = targets(state, batch, hp, key, cached)
        return fit(state, *learned(batch), y, hp)

    def weighted_update(
        state: AgentState,
        batch: Transition | Segment,
        hp: HParams,
        key: PRNGKeyArray,
        weights: Float[Array, "batch"],
    ) -> tuple[AgentState, Float[Array, ""], Float[Array, "batch"]]:
        """As `update`, with a weight per loss; also returns the errors `y - Q(s,a)`, atom means."""
        y = targets(state, batch, hp, key, None)
        return descend(state, *learned(batch), y, hp, weights)

    def learned(batch: Transition | Segment) -> tuple[Seen, Array]:
        """The observations and actions whose values are learned: the first ones of segments."""
        first = isinstance(batch, Segment)
        return jax.tree.map(lambda x: x[:, 0] if first else x, (batch.observation, batch.action))

    def fit(
        state: AgentState,
        observation: Seen,
        action: Int[Array, "batch"],
        y: Float[Array, "batch *N"],
        hp: HParams,
    ) -> tuple[AgentState, Float[Array, ""]]:
        """One optimiser step towards given targets."""
        return descend(state, observation, action, y, hp, None)[:2]

    def descend(
        state: AgentState,
        observation: Seen,
        action: Int[Array, "batch"],
        y: Float[Array, "batch *N"],
        hp: HParams,
        weights: Float[Array, "batch"] | None,
    ) -> tuple[AgentState, Float[Array, ""], Float[Array, "batch"]]:
        def batch_loss(params):
            Z = atoms(params, observation)
            chosen = jax.vmap(lambda Z, a: Z[a])(Z, action)
            scalar = chosen.ndim == 1
            losses = error_loss(y - chosen) if scalar else jax.vmap(quantile_huber)(chosen, y)
            errors = jax.vmap(jnp.mean)(y - chosen)
            return jnp.mean(losses if weights is None else weights * losses), errors

        (loss_value, errors), gradient = jax.value_and_grad(batch_loss, has_aux=True)(state.params)
        if clip_gradient:
            scale = jnp.minimum(1, hp.max_grad_norm / optax.tree.norm(gradient))
            gradient = jax.tree.map(lambda g: g * scale, gradient)
        step, moments = transform.update(gradient, state.moments)
        params = jax.tree.map(lambda p, d: p - hp.learning_rate * d, state.params, step)
        frozen = state.target_params
        frozen = follow(frozen, params, hp.tau) if polyak else frozen
        return AgentState(params, frozen, moments), loss_value, errors

    def copy_target(state: AgentState) -> AgentState:
        return state if polyak else state._replace(target_params=state.params)

    def value(Z: Float[Array, "A *N"], hp: HParams) -> Float[Array, "*N"]:
        return algorithm.value(action_values(Z), Z, hp, tsallis)

    def bonus(x: Bootstrap, hp: HParams) -> Float[Array, ""]:
        return algorithm.bonus(x, hp, tsallis)

    functions = init, act, behaviour, update, weighted_update, fit, copy_target
    return Agent(*functions, policy, atoms, value, bonus)
