"""The two terms of every target: the value at s' and the bonus at (s, a). Below them, the losses.

A target is `r + discount * value + bonus` (`table.one_step`). An algorithm is a pair of the
functions below; tables and pages print the first formula of each docstring.

- A value is the average of the atoms `Z` under the policy of the action values `Q`, so the same
  line serves action values `(A,)` and quantiles `(A, N)`. In an agent `Q` is the mean of `Z`.
- A bonus is a scalar for both kinds of head, and 0 at beta = 0.

All values are those of the target network, for one transition: `vmap` over a batch.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from tsallax.policies.closed import (
    greedy,
    is_ruled_out,
    q_log,
    shannon_entropy,
    softmax,
    tsallis_entropy,
)
from tsallax.types import Bootstrap, HParams, Number, Policy


def action_values(Z: Float[Array, "A *N"]) -> Float[Array, "A"]:
    """`Q(a)`, the mean of the atoms."""
    return jnp.mean(Z.reshape(Z.shape[0], -1), -1)


def expect(pi: Float[Array, "A"], Z: Float[Array, "A *N"]) -> Float[Array, "*N"]:
    """`<pi, Z>`, separately for each atom."""
    return jnp.tensordot(pi, Z, 1)


def advantage(x: Bootstrap, pi: Float[Array, "A"]) -> Float[Array, ""]:
    """`Q(s,a) - <pi, Q>`."""
    return x.Q[x.a] - expect(pi, x.Q)


def weighted_entropy(pi: Float[Array, "A"], hp: HParams) -> Float[Array, ""]:
    """`alpha H_q(pi)`."""
    return hp.alpha * tsallis_entropy(pi, hp.q, hp.k)


def hard(Q: Float[Array, "A"], hp: HParams) -> Float[Array, "A"]:
    """The greedy policy, which has no hyper-parameters."""
    return greedy(Q)


def boltzmann(Q: Float[Array, "A"], hp: HParams) -> Float[Array, "A"]:
    """`softmax(Q/alpha)`, where alpha is the weight of Shannon's entropy."""
    return softmax(Q, hp.alpha)


def log_sum_exp(Q: Float[Array, "A"], hp: HParams) -> Float[Array, ""]:
    """`V = alpha ln sum exp(Q/alpha) = <pi, Q - alpha ln pi>`, where pi is the Boltzmann policy."""
    return hp.alpha * jax.nn.logsumexp(Q / hp.alpha)


def log_mean_exp(Q: Float[Array, "A"], hp: HParams) -> Float[Array, ""]:
    """`W = alpha ln mean exp(Q/alpha)`, the mellowmax."""
    return log_sum_exp(Q, hp) - _log_actions(Q, hp)


def _log_actions(Q: Float[Array, "A"], hp: HParams) -> Float[Array, ""]:
    """`alpha ln A`, where A is the number of allowed actions."""
    return hp.alpha * jnp.log(jnp.sum(~is_ruled_out(Q), dtype=Q.dtype))


# The value at s'. -------------------------------------------------------------------------------


def max_value(
    Q: Float[Array, "A"], Z: Float[Array, "A *N"], hp: HParams, policy: Policy
) -> Float[Array, "*N"]:
    """`max Q'`."""
    return expect(hard(Q, hp), Z)


def expected_value(
    Q: Float[Array, "A"], Z: Float[Array, "A *N"], hp: HParams, policy: Policy
) -> Float[Array, "*N"]:
    """`<pi',Q'>`, plus `alpha H_q(pi')` if `hp.entropy` is 1."""
    pi = policy(Q, hp)
    return expect(pi, Z) + hp.entropy * weighted_entropy(pi, hp)


def q_soft_value(
    Q: Float[Array, "A"], Z: Float[Array, "A *N"], hp: HParams, policy: Policy
) -> Float[Array, "*N"]:
    """`<pi', Q' - alpha ln_q pi'>`, independent of the entropy's factor k."""
    pi = policy(Q, hp)
    return expect(pi, Z) + hp.alpha * tsallis_entropy(pi, hp.q, 1.0)


def boltzmann_value(
    Q: Float[Array, "A"], Z: Float[Array, "A *N"], hp: HParams, policy: Policy
) -> Float[Array, "*N"]:
    """`<pi',Q'>`, where pi is the Boltzmann policy; always without its entropy."""
    return expect(boltzmann(Q, hp), Z)


def soft_value(
    Q: Float[Array, "A"], Z: Float[Array, "A *N"], hp: HParams, policy: Policy
) -> Float[Array, "*N"]:
    """`<pi', Q' - alpha ln pi'>`, where pi is the Boltzmann policy."""
    pi = boltzmann(Q, hp)
    return expect(pi, Z) + hp.alpha * shannon_entropy(pi)


def mellowmax_value(
    Q: Float[Array, "A"], Z: Float[Array, "A *N"], hp: HParams, policy: Policy
) -> Float[Array, "*N"]:
    """`W(Q')`, where W is the mellowmax `alpha ln mean exp(Q/alpha)`."""
    return soft_value(Q, Z, hp, policy) - _log_actions(Q, hp)


# The bonus at (s, a). ---------------------------------------------------------------------------


def no_bonus(x: Bootstrap, hp: HParams, policy: Policy) -> Float[Array, ""]:
    """`0`: nothing is added."""
    return jnp.zeros_like(x.r)


def advantage_bonus(x: Bootstrap, hp: HParams, policy: Policy) -> Float[Array, ""]:
    """`beta (Q(s,a) - <pi,Q>)`."""
    return hp.beta * advantage(x, policy(x.Q, hp))


def advantage_bonus_v(x: Bootstrap, hp: HParams, policy: Policy) -> Float[Array, ""]:
    """`beta (Q(s,a) - <pi,Q> - alpha H_q(pi))`: the advantage over the regularised value V."""
    pi = policy(x.Q, hp)
    return hp.beta * (advantage(x, pi) - weighted_entropy(pi, hp))


def greedy_bonus(x: Bootstrap, hp: HParams, policy: Policy) -> Float[Array, ""]:
    """`beta (Q(s,a) - max Q)`."""
    return hp.beta * (x.Q[x.a] - jnp.max(x.Q))


def clipped_bonus(x: Bootstrap, hp: HParams, policy: Policy) -> Float[Array, ""]:
    """`beta (Q(s,a) - max Q) 1{Q(s,a) - Q_l >= c (max Q - Q_l)}`.

    It enlarges the gap only for actions close to the best one, relative to the lower bound Q_l.
    """
    close = x.Q[x.a] - hp.value_floor >= hp.clip_ratio * (jnp.max(x.Q) - hp.value_floor)
    return jnp.where(close, greedy_bonus(x, hp, policy), 0)


def boltzmann_bonus(x: Bootstrap, hp: HParams, policy: Policy) -> Float[Array, ""]:
    """`beta (Q(s,a) - <pi,Q>), pi softmax`."""
    return hp.beta * advantage(x, boltzmann(x.Q, hp))


def mellowmax_bonus(x: Bootstrap, hp: HParams, policy: Policy) -> Float[Array, ""]:
    """`beta (Q(s,a) - W(Q)), W mellowmax`."""
    return hp.beta * (x.Q[x.a] - log_mean_exp(x.Q, hp))


def persistent_bonus(x: Bootstrap, hp: HParams, policy: Policy) -> Float[Array, ""]:
    """`max{beta (Q(s,a) - max Q), gamma (Q'(a) - max Q')}`.

    For a scalar head the target is then `max(AL, r + gamma Q'(a))`, the form of the theory.
    """
    Q = action_values(x.Z)
    stay = x.discount * (Q[x.a] - jnp.max(Q))
    return jnp.maximum(greedy_bonus(x, hp, policy), stay)


def persistent_bonus_atari(x: Bootstrap, hp: HParams, policy: Policy) -> Float[Array, ""]:
    """`beta max{Q(s,a) - max Q, Q'(a) - max Q'}`, the form used in the Atari experiments.

    Q' is 0 after a termination: the s' stored with it belongs to another episode.
    """
    Q = action_values(x.Z)
    stay = jnp.where(x.discount > 0, Q[x.a] - jnp.max(Q), 0)
    return hp.beta * jnp.maximum(x.Q[x.a] - jnp.max(x.Q), stay)


def beta_draw(key: PRNGKeyArray, a: int, b: int) -> Float[Array, ""]:
    """A sample of Beta(a, b) for integers a, b: the a-th smallest of a + b - 1 uniform numbers."""
    return jnp.sort(jax.random.uniform(key, (a + b - 1,)))[a - 1]


def stochastic_bonus(x: Bootstrap, hp: HParams, policy: Policy) -> Float[Array, ""]:
    """`beta b (Q(s,a) - max Q), b ~ Beta(2,7) + 7/9`, of mean 1 and variance 7/405."""
    return hp.beta * (beta_draw(x.key, 2, 7) + 7 / 9) * (x.Q[x.a] - jnp.max(x.Q))


def stochastic_bonus_printed(x: Bootstrap, hp: HParams, policy: Policy) -> Float[Array, ""]:
    """`beta b (Q(s,a) - max Q), b ~ Beta(2,9) + 7/9`, as printed, of mean 95/99."""
    return hp.beta * (beta_draw(x.key, 2, 9) + 7 / 9) * (x.Q[x.a] - jnp.max(x.Q))


def munchausen_bonus(x: Bootstrap, hp: HParams, policy: Policy) -> Float[Array, ""]:
    """`beta [alpha ln pi(a)]`, where pi is the Boltzmann policy (eq. 8).

    `alpha ln pi(a)` is computed as `Q(s,a) - V(s)`, which avoids the logarithm of a probability.
    """
    return hp.beta * _clip(x.Q[x.a] - log_sum_exp(x.Q, hp), hp)


def log_policy_bonus(x: Bootstrap, hp: HParams, policy: Policy) -> Float[Array, ""]:
    """`beta [w ln(pi(a) + Delta)]`, where w is alpha or 1."""
    log_pi = jnp.log(policy(x.Q, hp)[x.a] + hp.delta)
    return hp.beta * _clip(hp.log_weight * log_pi, hp)


def q_log_policy_bonus(x: Bootstrap, hp: HParams, policy: Policy) -> Float[Array, ""]:
    """`beta [w ln_q(pi(a) + Delta)]`, where `ln_q x = (x^(q-1) - 1)/(q-1)`."""
    log_pi = q_log(policy(x.Q, hp)[x.a] + hp.delta, hp.q)
    return hp.beta * _clip(hp.log_weight * log_pi, hp)


def _clip(log_term: Float[Array, ""], hp: HParams) -> Float[Array, ""]:
    """`[.]`: clips from below at l0, with no upper bound."""
    return jnp.maximum(log_term, hp.clip)


# The loss of one prediction against one target. ------------------------------------------------


def squared(error: Float[Array, "..."]) -> Float[Array, "..."]:
    """`error^2`, as the paper prints it, without a factor 1/2."""
    return error**2


def huber(error: Float[Array, "..."], kappa: Number = 1.0) -> Float[Array, "..."]:
    """`error^2/2` up to kappa, then `kappa (|error| - kappa/2)`."""
    inner = jnp.minimum(jnp.abs(error), kappa)
    return inner * (jnp.abs(error) - inner / 2)


def quantile_huber(
    theta: Float[Array, "N"], target: Float[Array, "M"], kappa: Number = 1.0
) -> Float[Array, ""]:
    """`sum_i mean_j |tau_i - 1{u_ij < 0}| huber(u_ij)/kappa`, `u_ij = target_j - theta_i`.

    The quantile levels are the midpoints `tau_i = (2i + 1)/(2N)`, as in QR-DQN.
    """
    N = theta.shape[0]
    tau = (jnp.arange(N, dtype=theta.dtype) + 0.5) / N
    u = target[None, :] - theta[:, None]
    weight = jnp.abs(tau[:, None] - (u < 0))
    return jnp.sum(jnp.mean(weight * huber(u, kappa) / kappa, 1))
