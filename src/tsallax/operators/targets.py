"""The bootstrap targets: every algorithm is one equation is one function.

Each is `r + bonus + discount * value` of one transition, all from the target network; `vmap` it
over a batch. The value is a policy's average of the atoms `Z` at s', so that the same line serves
action values `(A,)` and quantiles `(A, N)`; the bonus is a scalar in both cases, and 0 at beta = 0.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from tsallax.policies import greedy, q_log, shannon_entropy, softmax, tsallis_entropy
from tsallax.types import Bootstrap, HParams, Policy


def action_values(Z: Float[Array, "A *N"]) -> Float[Array, "A"]:
    """`Q(a)`, the mean of the atoms."""
    return jnp.mean(Z.reshape(Z.shape[0], -1), -1)


def expect(pi: Float[Array, "A"], Z: Float[Array, "A *N"]) -> Float[Array, "*N"]:
    """`<pi, Z>`, atom by atom."""
    return jnp.tensordot(pi, Z, 1)


def advantage(x: Bootstrap, pi: Float[Array, "A"]) -> Float[Array, ""]:
    """`Q(s,a) - <pi, Q>`."""
    return x.Q[x.a] - expect(pi, x.Q)


def entropy_bonus(pi: Float[Array, "A"], hp: HParams) -> Float[Array, ""]:
    """`alpha H_q(pi)`."""
    return hp.alpha * tsallis_entropy(pi, hp.q, hp.k)


def hard(Q: Float[Array, "A"], hp: HParams) -> Float[Array, "A"]:
    """The greedy policy: no numbers stand in it."""
    return greedy(Q)


def boltzmann(Q: Float[Array, "A"], hp: HParams) -> Float[Array, "A"]:
    """`softmax(Q/alpha)`, alpha the Shannon coefficient."""
    return softmax(Q, hp.alpha)


def soft_value(Q: Float[Array, "A"], hp: HParams) -> Float[Array, ""]:
    """`V = alpha ln sum exp(Q/alpha) = <pi, Q - alpha ln pi>`, pi the Boltzmann policy."""
    return hp.alpha * jax.nn.logsumexp(Q / hp.alpha)


def dqn(x: Bootstrap, hp: HParams, policy: Policy) -> Float[Array, "*N"]:
    """`r + gamma max Q'`."""
    return x.r + x.discount * expect(hard(action_values(x.Z), hp), x.Z)


def soft_dqn(x: Bootstrap, hp: HParams, policy: Policy) -> Float[Array, "*N"]:
    """`r + gamma <pi', Q' - alpha ln pi'>`, `pi = softmax(Q/alpha)`."""
    pi = boltzmann(action_values(x.Z), hp)
    return x.r + x.discount * (expect(pi, x.Z) + hp.alpha * shannon_entropy(pi))


def tsallis_dqn(x: Bootstrap, hp: HParams, policy: Policy) -> Float[Array, "*N"]:
    """`r + gamma (<pi',Q'> [+ alpha H_q(pi')])`."""
    pi = policy(action_values(x.Z), hp)
    return x.r + x.discount * (expect(pi, x.Z) + hp.entropy * entropy_bonus(pi, hp))


def al(x: Bootstrap, hp: HParams, policy: Policy) -> Float[Array, "*N"]:
    """Advantage learning: `dqn + beta (Q(s,a) - max Q)`."""
    return dqn(x, hp, policy) + hp.beta * (x.Q[x.a] - jnp.max(x.Q))


def pal(x: Bootstrap, hp: HParams, policy: Policy) -> Float[Array, "*N"]:
    """Persistent AL: `dqn + max{beta (Q(s,a) - max Q), gamma (Q'(a) - max Q')}`.

    For a scalar head that is `max(AL, r + gamma Q'(a))`, the form of the theory.
    """
    Q = action_values(x.Z)
    stay = x.discount * (Q[x.a] - jnp.max(Q))
    return dqn(x, hp, policy) + jnp.maximum(hp.beta * (x.Q[x.a] - jnp.max(x.Q)), stay)


def pal_atari(x: Bootstrap, hp: HParams, policy: Policy) -> Float[Array, "*N"]:
    """Persistent AL as run on Atari: `dqn + beta max{Q(s,a) - max Q, Q'(a) - max Q'}`.

    Q' is 0 after termination: the s' that comes with it is some other episode's.
    """
    Q = action_values(x.Z)
    stay = jnp.where(x.discount > 0, Q[x.a] - jnp.max(Q), 0)
    return dqn(x, hp, policy) + hp.beta * jnp.maximum(x.Q[x.a] - jnp.max(x.Q), stay)


def beta_draw(key: PRNGKeyArray, a: int, b: int) -> Float[Array, ""]:
    """A draw of Beta(a, b) with whole a, b: the a-th smallest of a + b - 1 uniform numbers."""
    return jnp.sort(jax.random.uniform(key, (a + b - 1,)))[a - 1]


def sal(x: Bootstrap, hp: HParams, policy: Policy) -> Float[Array, "*N"]:
    """Stochastic AL: `al` with `beta b`, `b ~ Beta(2,7) + 7/9` of mean 1 and variance 7/405."""
    return al(x, hp._replace(beta=hp.beta * (beta_draw(x.key, 2, 7) + 7 / 9)), policy)


def sal_printed(x: Bootstrap, hp: HParams, policy: Policy) -> Float[Array, "*N"]:
    """`sal` with the law that the text prints, `Beta(2,9) + 7/9`, of mean 95/99."""
    return al(x, hp._replace(beta=hp.beta * (beta_draw(x.key, 2, 9) + 7 / 9)), policy)


def mdqn(x: Bootstrap, hp: HParams, policy: Policy) -> Float[Array, "*N"]:
    """Munchausen DQN: `soft_dqn + beta [alpha ln pi(a|s)]`, clipped below (eq. 8).

    `alpha ln pi(a|s)` is computed as `Q(s,a) - V(s)`, without a logarithm of a probability.
    """
    return soft_dqn(x, hp, policy) + hp.beta * _clip(x.Q[x.a] - soft_value(x.Q, hp), hp)


def mt_dqn(x: Bootstrap, hp: HParams, policy: Policy) -> Float[Array, "*N"]:
    """Munchausen Tsallis DQN: `tsallis_dqn + beta [w ln(pi(a|s) + Delta)]`, w = alpha or 1."""
    log_pi = jnp.log(policy(x.Q, hp)[x.a] + hp.delta)
    return tsallis_dqn(x, hp, policy) + hp.beta * _clip(hp.log_weight * log_pi, hp)


def mt_dqn_qlog(x: Bootstrap, hp: HParams, policy: Policy) -> Float[Array, "*N"]:
    """`mt_dqn` with the q-logarithm, `ln_q x = (x^(q-1) - 1)/(q-1)` (the paper's future work)."""
    log_pi = q_log(policy(x.Q, hp)[x.a] + hp.delta, hp.q)
    return tsallis_dqn(x, hp, policy) + hp.beta * _clip(hp.log_weight * log_pi, hp)


def _clip(log_term: Float[Array, ""], hp: HParams) -> Float[Array, ""]:
    """`[.]` of the Munchausen targets: between l0 and no upper bound."""
    return jnp.maximum(log_term, hp.clip)


def cvi(x: Bootstrap, hp: HParams, policy: Policy) -> Float[Array, "*N"]:
    """Conservative value iteration: `tal` with `pi = softmax(Q/alpha)` and no entropy (eq. 10)."""
    return tal(x, hp._replace(entropy=0.0), boltzmann)


def cvi_mellowmax(x: Bootstrap, hp: HParams, policy: Policy) -> Float[Array, "*N"]:
    """`r + gamma W(Q') + beta (Q(s,a) - W(Q))`, `W = alpha ln mean exp(Q/alpha)` (mellowmax)."""
    offset = hp.alpha * jnp.log(x.Q.shape[0])
    advantage = x.Q[x.a] - soft_value(x.Q, hp) + offset
    return soft_dqn(x, hp, policy) - x.discount * offset + hp.beta * advantage


def tal(x: Bootstrap, hp: HParams, policy: Policy) -> Float[Array, "*N"]:
    """Tsallis advantage learning: `tsallis_dqn + beta (Q(s,a) - <pi,Q>)` (eq. 11, m = 1)."""
    return tsallis_dqn(x, hp, policy) + hp.beta * advantage(x, policy(x.Q, hp))


def tal_v(x: Bootstrap, hp: HParams, policy: Policy) -> Float[Array, "*N"]:
    """`tal` with the regularised value in the advantage: `Q(s,a) - <pi,Q> - alpha H_q(pi)`."""
    return tal(x, hp, policy) - hp.beta * entropy_bonus(policy(x.Q, hp), hp)
