"""Actor-critics for continuous actions: a policy network, two critics, an automatic alpha.

SAC, TAC, Munchausen SAC and TAL-AC are one function: they differ in the two terms of the target
(`tsallax.operators.actor_critics`) and in their numbers. Actions are in [-1, 1], with independent
dimensions; the environment scales them to its bounds.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, Shaped

from tsallax.agents import OPTIMISERS, AgentState
from tsallax.agents.actor_update import Losses, Weights, learn, start
from tsallax.networks.dense import Network, Params
from tsallax.operators.actor_critics import ActorCritic, Draws, q_log_density
from tsallax.operators.table import backup
from tsallax.policies import densities
from tsallax.types import HParams, Number, Transition

Density = Literal["gaussian", "q-gaussian"]
LOG_SCALE = (-20.0, 2.0)  # bounds, as in Stable-Baselines3
POINTS = 120  # number of points at which a density is shown
NODES = 64  # number of draws to estimate the width and the entropy of a density

Actions = Float[Array, "batch D"]


class Noise(NamedTuple):
    """Standard draws, which the policy scales and shifts."""

    now: Actions
    following: Actions
    baseline: Float[Array, "batch M D"]


class ActorAgent(NamedTuple):
    """Functions of one seed; those named as in `tsallax.agents.Agent` do the same."""

    init: Callable[[PRNGKeyArray], AgentState]
    act: Callable[..., Float[Array, "D"]]  # (params, observation, epsilon, hp, key)
    choose: Callable[..., Float[Array, "D"]]  # (params, observation, hp, uniform, greedy)
    update: Callable[..., tuple[AgentState, Float[Array, ""]]]  # (state, batch, hp, key)
    copy_target: Callable[[AgentState], AgentState]
    policy: Callable[..., tuple[Float[Array, "1"], Float[Array, "D points"]]]  # Q and densities
    metrics: Callable[..., Losses]  # (state, observations, hp)
    losses: Callable[..., Losses]  # (state, batch, noise, hp), before an update
    dimensions: int  # D, dimensions of an action


def make_actor_critic(
    actor: Network,
    critic: Network,
    algorithm: ActorCritic,
    dimensions: int,
    *,
    density: Density = "gaussian",
    automatic_alpha: bool = True,
    baseline_actions: int = 4,
    optimiser: str = "adam",
    optimiser_eps: float = 1e-8,
) -> ActorAgent:
    """Make the functions of one seed.

    Args:
        actor: maps an observation to `(2, D)`, centre and logarithm of the scale.
        critic: maps an observation with an action appended to one value, `(1,)`.
        algorithm: the terms of the target.
        dimensions: D, dimensions of an action.
        density: of the policy before its squash; a `q-gaussian` has the index q of the entropy.
        automatic_alpha: alpha is adapted to the target entropy; else it is the number `alpha`.
        baseline_actions: M, the number of draws for the mean value in an advantage.
        optimiser: `adam`, `radam` or `rmsprop`.
        optimiser_eps: added to the root of the second moment.
    """
    transform = OPTIMISERS[optimiser](eps=optimiser_eps)

    def index(hp: HParams) -> Number:
        return 1.0 if density == "gaussian" else hp.q

    def init(key: PRNGKeyArray) -> AgentState:
        k_actor, k_one, k_other = jax.random.split(key, 3)
        return start(actor.init(k_actor), critic, (k_one, k_other), transform)

    def look(params: Params, observation: Shaped[Array, "..."]) -> tuple[Array, Array]:
        """Centre and scale of the policy."""
        centre, log_scale = actor.apply(params, observation)
        return centre, jnp.exp(jnp.clip(log_scale, *LOG_SCALE))

    def draw(
        params: Params, observation: Shaped[Array, "..."], z: Float[Array, "D"], hp: HParams
    ) -> tuple[Float[Array, "D"], Float[Array, "D"]]:
        """An action and the logarithm of its density."""
        return densities.squashed(*look(params, observation), z, index(hp))

    def value(params: Params, observation: Shaped[Array, "..."], action: Float[Array, "D"]):
        inputs = jnp.append(observation.reshape(-1).astype(jnp.float32), action)
        return critic.apply(params, inputs)[0]

    def least(critics, observation, action) -> Float[Array, ""]:
        """The smaller of the two critics' values."""
        one, other = (value(params, observation, action) for params in critics)
        return jnp.minimum(one, other)

    def alpha_of(params: Weights, hp: HParams) -> Float[Array, ""]:
        return hp.alpha * jnp.exp(params.log_alpha)

    def entropy_target(hp: HParams) -> Float[Array, ""]:
        """`D H_q` of the width at which a Gaussian has the Shannon entropy `target_entropy`."""
        width = densities.width_of_entropy(hp.target_entropy)
        closed = {
            "gaussian": densities.gaussian_entropy,
            "q-gaussian": densities.q_gaussian_entropy,
        }
        return dimensions * closed[density](width, hp.q, hp.k)

    def target(params: Weights, frozen, x: Transition, noise: Noise, hp: HParams):
        """The target of one transition, by the algorithm's own functions."""
        hp = hp._replace(alpha=alpha_of(params, hp))
        drawn = jax.vmap(lambda z: draw(params.actor, x.observation, z, hp)[0])(noise.baseline)
        following, log_pi_next = draw(params.actor, x.next_observation, noise.following, hp)
        here = look(params.actor, x.observation)
        terms = Draws(
            Q=least(frozen, x.observation, x.action),
            Q_drawn=jax.vmap(lambda a: least(frozen, x.observation, a))(drawn),
            log_pi=densities.squashed_log_density(x.action, *here, index(hp)),
            Q_next=least(frozen, x.next_observation, following),
            log_pi_next=log_pi_next,
        )
        discount = hp.gamma * (1 - x.terminated.astype(jnp.float32))
        return backup(x.reward, algorithm.bonus(terms, hp), discount, algorithm.value(terms, hp))

    def critic_loss(critics, batch: Transition, y: Float[Array, "batch"]) -> Float[Array, ""]:
        """`mean (Q_1 - y)^2/2 + mean (Q_2 - y)^2/2`."""

        def one(params):
            Q = jax.vmap(value, (None, 0, 0))(params, batch.observation, batch.action)
            return jnp.mean((Q - y) ** 2) / 2

        return one(critics[0]) + one(critics[1])

    def actor_loss(
        params: Params, critics, alpha, batch: Transition, z: Actions, hp: HParams
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """`mean alpha k ln_q pi(a) - min_i Q_i(s,a)`, a drawn from pi; and `mean k ln_q pi(a)`."""

        def one(observation, z):
            action, log_pi = draw(params, observation, z, hp)
            return q_log_density(log_pi, hp), least(critics, observation, action)

        logs, Q = jax.vmap(one)(batch.observation, z)
        return jnp.mean(alpha * logs - Q), jnp.mean(logs)

    def alpha_loss(log_alpha: Float[Array, ""], logs: Float[Array, ""], hp: HParams):
        """`ln(alpha) (H - target)`: alpha falls while the entropy is above its target."""
        return -log_alpha * jax.lax.stop_gradient(logs + entropy_target(hp))

    def targets(state: AgentState, batch: Transition, noise: Noise, hp: HParams):
        y = jax.vmap(target, (None, None, 0, 0, None))
        return y(state.params, state.target_params, batch, noise, hp)

    def losses(state: AgentState, batch: Transition, noise: Noise, hp: HParams) -> Losses:
        """The losses of critics, actor and alpha, at the current weights."""
        params = state.params
        y, alpha = targets(state, batch, noise, hp), alpha_of(params, hp)
        loss, logs = actor_loss(params.actor, params.critics, alpha, batch, noise.now, hp)
        return {
            "critic": critic_loss(params.critics, batch, y),
            "actor": loss,
            "alpha": alpha_loss(params.log_alpha + jnp.log(hp.alpha), logs, hp),
        }

    def standard(key: PRNGKeyArray, shape: tuple[int, ...], hp: HParams) -> Array:
        u, v = jax.random.uniform(key, (2, *shape))
        return densities.standard_draw(u, v, index(hp))

    def update(
        state: AgentState,
        batch: Transition,
        hp: HParams,
        key: PRNGKeyArray,
        cached: None = None,
    ) -> tuple[AgentState, Float[Array, ""]]:
        """One update of critics, actor and alpha; returns the critics' loss."""
        del cached
        k_now, k_next, k_baseline = jax.random.split(key, 3)
        size = batch.action.shape[0]
        noise = Noise(
            standard(k_now, (size, dimensions), hp),
            standard(k_next, (size, dimensions), hp),
            standard(k_baseline, (size, baseline_actions, dimensions), hp),
        )
        alpha, y = alpha_of(state.params, hp), targets(state, batch, noise, hp)
        return learn(
            state,
            hp,
            transform,
            lambda critics: critic_loss(critics, batch, y),
            lambda actor, critics: actor_loss(actor, critics, alpha, batch, noise.now, hp),
            (lambda log_alpha, logs: alpha_loss(log_alpha, logs, hp)) if automatic_alpha else None,
        )

    def choose(
        params: Weights,
        observation: Shaped[Array, "..."],
        hp: HParams,
        uniform: Float[Array, "2 D"],
        greedy: bool,
    ) -> Float[Array, "D"]:
        """A sample of the policy by uniform numbers, or its centre."""
        if greedy:
            return jnp.tanh(look(params.actor, observation)[0])
        z = densities.standard_draw(uniform[0], uniform[1], index(hp))
        return draw(params.actor, observation, z, hp)[0]

    def act(
        params: Weights,
        observation: Shaped[Array, "..."],
        epsilon: Float[Array, ""],
        hp: HParams,
        key: PRNGKeyArray,
    ) -> Float[Array, "D"]:
        """Sample the policy or, in a share `epsilon` of the steps, uniformly from all actions."""
        k_policy, k_uniform, k_which = jax.random.split(key, 3)
        uniform = jax.random.uniform(k_policy, (2, dimensions))
        action = choose(params, observation, hp, uniform, greedy=False)
        anything = jax.random.uniform(k_uniform, (dimensions,), minval=-1)
        return jnp.where(jax.random.uniform(k_which) < epsilon, anything, action)

    def policy(
        params: Weights, observation: Shaped[Array, "..."], hp: HParams
    ) -> tuple[Float[Array, "1"], Float[Array, "D points"]]:
        """The value of the centre, and the density of each dimension at `POINTS` actions."""
        centre, scale = look(params.actor, observation)
        Q = least(params.critics, observation, jnp.tanh(centre))
        at = (2 * jnp.arange(POINTS) + 1) / POINTS - 1
        curve = jax.vmap(lambda a: densities.squashed_log_density(a, centre, scale, index(hp)))
        return Q[None], jnp.exp(curve(jnp.broadcast_to(at[:, None], (POINTS, len(centre))))).T

    def metrics(
        state: AgentState, seen: Shaped[Array, "batch ..."], hp: HParams
    ) -> dict[str, Float[Array, ""]]:
        """Metrics of policy and critics on a batch of observations."""
        k_nodes, k_anything = jax.random.split(jax.random.key(0))
        z = standard(k_nodes, (NODES, dimensions), hp)
        anything = jax.random.uniform(k_anything, (len(seen), dimensions), minval=-1)
        critics, q = state.params.critics, index(hp)

        def one(observation, other):
            centre, scale = look(state.params.actor, observation)
            actions, logs = jax.vmap(lambda z: densities.squashed(centre, scale, z, q))(z)
            low, high = densities.squashed_support(centre, scale, q)
            both = [value(params, observation, jnp.tanh(centre)) for params in critics]
            best = jnp.minimum(*both)
            return {
                "max_q": best,
                "action_gap": best - least(critics, observation, other),
                "entropy": -jnp.mean(jnp.sum(logs, -1)),
                "support": jnp.mean(high - low) / 2,
                "critic_gap": jnp.abs(both[0] - both[1]),
                "width": jnp.mean(jnp.std(actions, 0)),
            }

        found = jax.tree.map(jnp.mean, jax.vmap(one)(seen, anything))
        return {**found, "kl": jnp.full((), jnp.nan), "temperature": alpha_of(state.params, hp)}

    def copy_target(state: AgentState) -> AgentState:
        """Does nothing: the frozen critics move at every update."""
        return state

    return ActorAgent(init, act, choose, update, copy_target, policy, metrics, losses, dimensions)
