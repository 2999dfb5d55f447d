"""Returns of a rollout, composed from the two terms of an algorithm: n-step and lambda-returns.

They are for one environment and T steps, time first; `vmap` over environments. Row t describes the
step from s_t to s_{t+1}:

- `discounts[t]` is gamma, or 0 where the episode terminated at s_{t+1};
- `next_values[t]` is the value of the true s_{t+1}: where a time limit truncated the episode, that
  of its last observation, not of the first one of the next episode;
- `cut[t]` is true where row t + 1 does not continue the episode of row t: it was truncated at
  s_{t+1}, or the rollout ends there (the last row always counts as cut). The return then ends with
  `next_values[t]`.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from tsallax.operators.table import Algorithm, backup
from tsallax.operators.targets import action_values
from tsallax.types import Bootstrap, HParams, Policy, Target, Traced


def n_step_returns(
    rewards: Float[Array, "T"],
    bonuses: Float[Array, "T"],
    discounts: Float[Array, "T"],
    next_values: Float[Array, "T *N"],
    cut: Bool[Array, "T"],
    n: int | Int[Array, ""],
) -> Float[Array, "T *N"]:
    """`G^n_t = r_t + bonus_t + discount_t G^(n-1)_{t+1}`, where `G^0_t` is the value of s_t.

    Where it is cut before n steps, it ends with the value there: see the module docstring.
    """
    cut = cut.at[-1].set(True)
    rows = jax.vmap(backup)

    def longer(_, G):
        following = jax.vmap(jnp.where)(cut, next_values, jnp.roll(G, -1, 0))
        return rows(rewards, bonuses, discounts, following)

    return jax.lax.fori_loop(1, n, longer, rows(rewards, bonuses, discounts, next_values))


def n_step(algorithm: Algorithm) -> Target:
    """The target of n consecutive transitions: `G^n_0`, with the algorithm's bonus in every step.

    Row t of the `Bootstrap` is step t; its atoms are those that `onward` returns. Only the value at
    the segment's end is needed, after its first cut or after n steps: it is the last row's.
    """

    def target(
        x: Bootstrap,
        cut: Bool[Array, "n"],
        hp: HParams,
        policy: Policy,
        Q: Float[Array, "A"] | None = None,
    ) -> Float[Array, "*N"]:
        Z = x.Z[-1]
        value = algorithm.value(action_values(Z) if Q is None else Q, Z, hp, policy)
        bonuses = jax.vmap(algorithm.bonus, (0, None, None))(x, hp, policy)
        values = jnp.broadcast_to(value, (len(cut), *value.shape))
        return n_step_returns(x.r, bonuses, x.discount, values, cut, len(cut))[0]

    return target


def onward(
    Z: Float[Array, "n A *N"], Z_last: Float[Array, "A *N"], cut: Bool[Array, "n"]
) -> Float[Array, "n A *N"]:
    """The atoms at each step's next state: those of the next step, or `Z_last` after a cut."""
    following = jnp.concatenate([Z[1:], Z_last[None]])
    return jax.vmap(jnp.where, (0, None, 0))(cut, Z_last, following)


def lambda_returns(
    rewards: Float[Array, "T"],
    bonuses: Float[Array, "T"],
    discounts: Float[Array, "T"],
    next_values: Float[Array, "T *N"],
    cut: Bool[Array, "T"],
    lambda_: Traced,
) -> Float[Array, "T *N"]:
    """`G_t = r_t + bonus_t + discount_t ((1 - lambda) value_{t+1} + lambda G_{t+1})`.

    At lambda = 0 it is the one-step target of each row, at 1 the discounted sum of the rest of the
    episode. Where it is cut, `value_{t+1}` replaces the mixture: see the module docstring.
    """

    def step(following, row):
        reward, bonus, discount, value, ends = row
        mixture = jnp.where(ends, value, (1 - lambda_) * value + lambda_ * following)
        G = backup(reward, bonus, discount, mixture)
        return G, G

    rows = rewards, bonuses, discounts, next_values, cut.at[-1].set(True)
    return jax.lax.scan(step, next_values[-1], rows, reverse=True)[1]
