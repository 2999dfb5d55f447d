"""Actor-critics for discrete actions: two critics, with or without a policy network.

The target is that of a value agent (`tsallax.operators.targets`), with the actor's policy instead
of the policy of Q: TAL-AC has TAL's, SAC at q = 1 that of soft DQN. Integrals over actions are
sums here, so that no actions need to be drawn.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, Shaped

from tsallax.agents import OPTIMISERS, AgentState
from tsallax.agents.actor_update import Losses, Weights, learn, start
from tsallax.networks.dense import Network, Params
from tsallax.operators.actor_losses import ACTOR_LOSSES, policy_of_logits
from tsallax.operators.table import Algorithm, backup
from tsallax.policies.closed import (
    epsilon_greedy,
    kl_divergence,
    q_log_of_exp,
    sample,
    shannon_entropy,
    tsallis_entropy,
)
from tsallax.policies.tsallis import make_policy
from tsallax.types import Bootstrap, HParams, Transition

Actor = Literal["fenchel-young", "objective", "exact"]
Rows = Float[Array, "batch A"]


class DiscreteActor(NamedTuple):
    """Functions of one seed; those named as in `tsallax.agents.Agent` do the same."""

    init: Callable[[PRNGKeyArray], AgentState]
    act: Callable[..., Int[Array, ""]]  # (params, observation, epsilon, hp, key)
    update: Callable[..., tuple[AgentState, Float[Array, ""]]]  # (state, batch, hp, key)
    copy_target: Callable[[AgentState], AgentState]
    policy: Callable[..., tuple[Float[Array, "A"], Float[Array, "A"]]]  # Q and pi
    metrics: Callable[..., Losses]  # (state, observations, hp)
    losses: Callable[..., Losses]  # (state, batch, hp), before an update


def make_discrete_actor(
    network: Network,
    algorithm: Algorithm,
    *,
    actor: Actor = "fenchel-young",
    automatic_alpha: bool = False,
    q: float | None = None,
    optimiser: str = "adam",
    optimiser_eps: float = 1e-8,
) -> DiscreteActor:
    """Make the functions of one seed.

    Args:
        network: maps an observation to `(A,)`; the actor and each critic have a copy.
        algorithm: the row of a value agent, whose two terms make the target.
        actor: the loss of the actor, or `exact`: no actor, but the exact policy of the critics.
        automatic_alpha: alpha is adapted to the target entropy; else it is the number `alpha`.
        q: replaces `hp.q`, see `make_policy`.
        optimiser: `adam`, `radam` or `rmsprop`.
        optimiser_eps: added to the root of the second moment.
    """
    transform, tsallis = OPTIMISERS[optimiser](eps=optimiser_eps), make_policy("exact", q)
    exact = actor == "exact"

    def init(key: PRNGKeyArray) -> AgentState:
        k_actor, k_one, k_other = jax.random.split(key, 3)
        own = () if exact else network.init(k_actor)
        return start(own, network, (k_one, k_other), transform)

    def least(
        critics: tuple[Params, Params], observation: Shaped[Array, "..."]
    ) -> Float[Array, "A"]:
        """The smaller value of each action, as a maximum over noisy values is biased upwards."""
        return jnp.minimum(*(network.apply(params, observation) for params in critics))

    def in_effect(params: Weights, hp: HParams) -> HParams:
        """The numbers with the learned alpha."""
        alpha = hp.alpha * jnp.exp(params.log_alpha)
        return hp._replace(alpha=alpha, log_weight=alpha)

    def pi_at(
        params: Weights, critics: tuple[Params, Params], observation, hp: HParams
    ) -> Float[Array, "A"]:
        """The actor's policy or, without an actor, the exact policy of these critics."""
        if exact:
            return tsallis(least(critics, observation), hp)
        return policy_of_logits(network.apply(params.actor, observation), hp, tsallis)

    def target(params: Weights, frozen, x: Transition, hp: HParams) -> Float[Array, ""]:
        """The target of one transition, by the terms of the value agent."""
        pi = pi_at(params, frozen, x.observation, hp)
        pi_next = pi_at(params, frozen, x.next_observation, hp)
        Q, Q_next = least(frozen, x.observation), least(frozen, x.next_observation)
        discount = hp.gamma * (1 - x.terminated.astype(jnp.float32))
        value = algorithm.value(Q_next, Q_next, hp, lambda Q, hp: pi_next)
        at = Bootstrap(Q, x.action, x.reward, discount, Q_next, jax.random.key(0))
        return backup(x.reward, algorithm.bonus(at, hp, lambda Q, hp: pi), discount, value)

    def targets(state: AgentState, batch: Transition, hp: HParams) -> Float[Array, "batch"]:
        y = jax.vmap(target, (None, None, 0, None))
        return y(state.params, state.target_params, batch, hp)

    def critic_loss(critics, batch: Transition, y: Float[Array, "batch"]) -> Float[Array, ""]:
        """`mean (Q_1 - y)^2/2 + mean (Q_2 - y)^2/2`."""

        def one(params, observation, action):
            return network.apply(params, observation)[action]

        def half(params):
            Q = jax.vmap(one, (None, 0, 0))(params, batch.observation, batch.action)
            return jnp.mean((Q - y) ** 2) / 2

        return half(critics[0]) + half(critics[1])

    def actor_loss(
        params: Params, critics, seen: Shaped[Array, "batch ..."], hp: HParams
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """The means over states of the actor's loss and of the entropy `H_q`."""
        Q = jax.lax.stop_gradient(jax.vmap(least, (None, 0))(critics, seen))
        if exact:
            return jnp.zeros(()), entropy_of(jax.vmap(tsallis, (0, None))(Q, hp), hp)
        z = jax.vmap(network.apply, (None, 0))(params, seen)
        loss = jax.vmap(ACTOR_LOSSES[actor], (0, 0, None, None))(z, Q, hp, tsallis)
        pi = jax.vmap(policy_of_logits, (0, None, None))(z, hp, tsallis)
        return jnp.mean(loss), entropy_of(pi, hp)

    def entropy_of(pi: Rows, hp: HParams) -> Float[Array, ""]:
        return jnp.mean(tsallis_entropy(pi, hp.q, hp.k))

    def alpha_loss(
        log_alpha: Float[Array, ""], entropy: Float[Array, ""], actions: int, hp: HParams
    ) -> Float[Array, ""]:
        """`ln(alpha) (H - target)`; the target is the entropy of `A^share` equiprobable actions."""
        target = -hp.k * q_log_of_exp(-hp.target_entropy * jnp.log(actions), hp.q)
        return log_alpha * jax.lax.stop_gradient(entropy - target)

    def count(critics, seen: Shaped[Array, "batch ..."]) -> int:
        return jax.eval_shape(network.apply, critics[0], seen[0]).shape[0]

    def losses(state: AgentState, batch: Transition, hp: HParams) -> Losses:
        """The losses of critics, actor and alpha, at the current weights."""
        params, seen, hp = state.params, batch.observation, in_effect(state.params, hp)
        loss, entropy = actor_loss(params.actor, params.critics, seen, hp)
        actions = count(params.critics, seen)
        return {
            "critic": critic_loss(params.critics, batch, targets(state, batch, hp)),
            "actor": loss,
            "alpha": alpha_loss(jnp.log(hp.alpha), entropy, actions, hp),
        }

    def update(
        state: AgentState,
        batch: Transition,
        hp: HParams,
        key: PRNGKeyArray,
        cached: None = None,
    ) -> tuple[AgentState, Float[Array, ""]]:
        """One update of critics, actor and alpha; returns the critics' loss."""
        del key, cached
        seen, hp = batch.observation, in_effect(state.params, hp)
        y = targets(state, batch, hp)

        def of_alpha(log_alpha: Float[Array, ""], entropy: Float[Array, ""]):
            return alpha_loss(log_alpha, entropy, count(state.params.critics, seen), hp)

        return learn(
            state,
            hp,
            transform,
            lambda critics: critic_loss(critics, batch, y),
            lambda actor, critics: actor_loss(actor, critics, seen, hp),
            of_alpha if automatic_alpha else None,
        )

    def act(
        params: Weights,
        observation: Shaped[Array, "..."],
        epsilon: Float[Array, ""],
        hp: HParams,
        key: PRNGKeyArray,
    ) -> Int[Array, ""]:
        pi = pi_at(params, params.critics, observation, in_effect(params, hp))
        return sample(key, epsilon_greedy(pi, epsilon))

    def policy(
        params: Weights, observation: Shaped[Array, "..."], hp: HParams
    ) -> tuple[Float[Array, "A"], Float[Array, "A"]]:
        """The critics' smaller values, and the policy."""
        pi = pi_at(params, params.critics, observation, in_effect(params, hp))
        return least(params.critics, observation), pi

    def metrics(
        state: AgentState, seen: Shaped[Array, "batch ..."], hp: HParams
    ) -> dict[str, Float[Array, ""]]:
        """Metrics of policy and critics on a batch of observations."""
        params, hp = state.params, in_effect(state.params, hp)

        def one(observation):
            one, other = (network.apply(critic, observation) for critic in params.critics)
            Q = jnp.minimum(one, other)
            pi = pi_at(params, params.critics, observation, hp)
            top, entropy = jax.lax.top_k(Q, min(2, len(Q)))[0], shannon_entropy(pi)
            return {
                "max_q": top[0],
                "action_gap": top[0] - top[-1],
                "entropy": entropy,
                "support": jnp.sum(pi > 0, dtype=jnp.float32),
                "kl": kl_divergence(pi, tsallis(Q, hp) + hp.delta),  # finite for sparse policies
                "critic_gap": jnp.mean(jnp.abs(one - other)),
                "width": jnp.exp(entropy),
            }

        found = jax.tree.map(jnp.mean, jax.vmap(one)(seen))
        return {**found, "temperature": jnp.asarray(hp.alpha)}

    def copy_target(state: AgentState) -> AgentState:
        """Does nothing: the frozen critics move at every update."""
        return state

    return DiscreteActor(init, act, update, copy_target, policy, metrics, losses)
