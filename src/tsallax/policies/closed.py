"""Policies in closed form: greedy (q = inf), softmax (q = 1), sparsemax (q = 2).

Below them are the functions for acting (normalisation, a mixture with the uniform policy,
sampling), then the deformed logarithm, entropies and divergences.

The q-logarithm and the q-exponential follow the convention of the paper's future work,
`ln_q x = (x^(q-1) - 1)/(q-1)` and its inverse `exp_q x = [1 + (q-1) x]+^(1/(q-1))`: the natural
pair at q = 1. (Another convention in the literature writes `2 - q` for this `q`.)
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from tsallax.types import RULED_OUT, HParams, Number, Policy


def greedy(Q: Float[Array, "*batch A"]) -> Float[Array, "*batch A"]:
    """The greedy policy; ties share the probability equally."""
    best = (jnp.max(Q, -1, keepdims=True) == Q).astype(Q.dtype)
    return best / jnp.sum(best, -1, keepdims=True)


def softmax(Q: Float[Array, "*batch A"], tau: Number) -> Float[Array, "*batch A"]:
    """`exp(Q/tau) / sum exp(Q/tau)` (eq. 2): maximises `<pi,Q> + tau H(pi)`, Shannon's H."""
    return jax.nn.softmax((Q - jnp.max(Q, -1, keepdims=True)) / jnp.asarray(tau, Q.dtype))


def sparsemax_support(
    z: Float[Array, "*batch A"],
) -> tuple[Bool[Array, "*batch A"], Float[Array, "*batch 1"]]:
    """The support S and the normaliser `psi = (sum_S z - 1)/K` (eq. 5)."""
    ranked = jnp.sort(z, -1, descending=True)
    i = jnp.arange(1, z.shape[-1] + 1, dtype=z.dtype).reshape((1,) * (z.ndim - 1) + (-1,))
    allowed = 1 + i * ranked > jnp.cumsum(ranked, -1)
    K = jnp.sum(allowed, -1, keepdims=True, dtype=z.dtype)
    psi = (jnp.sum(jnp.where(allowed, ranked, 0), -1, keepdims=True) - 1) / K
    return z > psi, psi


def sparsemax(z: Float[Array, "*batch A"]) -> Float[Array, "*batch A"]:
    """`[z - psi]+`, the projection of z on the simplex (eq. 4 at q = 2, with z = Q/alpha)."""
    shifted = z - jnp.max(z, -1, keepdims=True)  # so that sums in psi lose no digits to an offset
    _, psi = sparsemax_support(shifted)
    return jnp.maximum(shifted - psi, 0)


def sparsemax_value(Q: Float[Array, "*batch A"], alpha: Number) -> Float[Array, "*batch"]:
    """`alpha (1/2 sum_S ((Q/alpha)^2 - psi^2) + 1/2)`: eq. 6 with its missing factor alpha."""
    alpha = jnp.asarray(alpha, Q.dtype)
    top = jnp.max(Q, -1, keepdims=True)
    z = (Q - top) / alpha
    S, psi = sparsemax_support(z)
    value = jnp.sum(jnp.where(S, z**2 - psi**2, 0), -1) / 2 + 0.5
    return alpha * value + top[..., 0]


def normalise(
    weights: Float[Array, "*batch A"], Q: Float[Array, "*batch A"]
) -> Float[Array, "*batch A"]:
    """The weights divided by their sum; infinite ones share it. If all are 0: greedy in Q."""
    top = jnp.max(weights, -1, keepdims=True)
    scaled = weights / jnp.where(top > 0, top, 1)  # their sum cannot overflow
    scaled = jnp.where(jnp.isinf(weights), 1, scaled)
    best = jnp.argmax(Q, -1, keepdims=True) == jnp.arange(Q.shape[-1]).reshape(
        (1,) * (Q.ndim - 1) + (-1,)
    )
    scaled = jnp.where(top > 0, scaled, best.astype(Q.dtype))
    return scaled / jnp.sum(scaled, -1, keepdims=True)


def epsilon_greedy(
    pi: Float[Array, "*batch A"], epsilon: Number, allowed: Bool[Array, "*batch A"] | None = None
) -> Float[Array, "*batch A"]:
    """`(1 - epsilon) pi + epsilon/A`, where A is the number of `allowed` actions."""
    epsilon = jnp.broadcast_to(jnp.asarray(epsilon, pi.dtype), pi.shape[:-1])[..., None]
    if allowed is None:
        return (1 - epsilon) * pi + epsilon / pi.shape[-1]
    return (1 - epsilon) * pi + epsilon * allowed / jnp.sum(allowed, -1, keepdims=True)


def is_ruled_out(Q: Float[Array, "*batch A"]) -> Bool[Array, "*batch A"]:
    """Returns which actions are not allowed; half of `RULED_OUT`, as a mean of atoms is rounded."""
    return Q <= RULED_OUT / 2


def rule_out(Q: Float[Array, "*batch A"]) -> Float[Array, "*batch A"]:
    """Sets the value of an action that is not allowed to -inf, so that its probability is 0."""
    return jnp.where(is_ruled_out(Q), -jnp.inf, Q)


def ruling_out(policy: Policy) -> Policy:
    """The policy for action values that may be `RULED_OUT`."""

    def over_allowed(Q: Float[Array, "A"], hp: HParams) -> Float[Array, "A"]:
        return policy(rule_out(Q), hp)

    return over_allowed


def sample(key: PRNGKeyArray, pi: Float[Array, "*batch A"]) -> Int[Array, "*batch"]:
    """Sample an action in proportion to `pi`; an action of probability 0 is never drawn.

    This inverts the cumulative sum with one uniform number per row, without logarithms.
    """
    total = jnp.cumsum(pi, -1)
    u = jax.random.uniform(key, (*pi.shape[:-1], 1), pi.dtype)
    # u < 1, but u * total may round up to total: the last action with mass is the bound.
    last = jnp.max(
        jnp.where(pi > 0, jnp.arange(pi.shape[-1]).reshape((1,) * (pi.ndim - 1) + (-1,)), 0), -1
    )
    return jnp.minimum(jnp.sum(total <= u * total[..., -1:], -1), last)


def q_log(x: Float[Array, "..."], q: Number) -> Float[Array, "..."]:
    """`ln_q x = (x^(q-1) - 1)/(q-1)`; 0 at q = inf for x in (0, 1]."""
    return q_log_of_exp(jnp.log(x), q)


def q_log_of_exp(log_x: Float[Array, "..."], q: Number) -> Float[Array, "..."]:
    """`ln_q x` from `ln x`, for log-densities."""
    e = jnp.asarray(q - 1, log_x.dtype)
    regular = (e != 0) & jnp.isfinite(e)
    safe = jnp.where(regular, e, 1)
    # expm1 keeps full precision near q = 1, where the quotient is 0/0.
    return jnp.where(regular, jnp.expm1(safe * log_x) / safe, jnp.where(e == 0, log_x, 0))


def q_exp(x: Float[Array, "..."], q: Number) -> Float[Array, "..."]:
    """`exp_q x = [1 + (q-1) x]+^(1/(q-1))`, the inverse of `q_log`."""
    e = jnp.asarray(q - 1, x.dtype)
    safe = jnp.where(e == 0, 1, e)
    return jnp.where(e == 0, jnp.exp(x), jnp.exp(jnp.log1p(jnp.maximum(safe * x, -1)) / safe))


def tsallis_entropy(
    pi: Float[Array, "*batch A"], q: Number, k: Number = 0.5
) -> Float[Array, "*batch"]:
    """`H_q(pi) = k/(q-1) (1 - sum pi^q) = -k <pi, ln_q pi>` (eq. 3); k times Shannon's at q = 1.

    The sum is over the support, so it is finite for q <= 0 as well. For a `pi` that does not sum
    to one the second form is used, as in the paper's Bellman operator.
    """
    batch = pi.shape[:-1]
    q = jnp.broadcast_to(jnp.asarray(q, pi.dtype), batch)[..., None]
    inside = pi > 0
    logs = q_log(jnp.where(inside, pi, 1), q)
    return -jnp.broadcast_to(jnp.asarray(k, pi.dtype), batch) * jnp.sum(
        jnp.where(inside, pi * logs, 0), -1
    )


def shannon_entropy(pi: Float[Array, "*batch A"]) -> Float[Array, "*batch"]:
    """`-<pi, ln pi>`."""
    return tsallis_entropy(pi, 1.0, 1.0)


def kl_divergence(
    pi: Float[Array, "*batch A"], other: Float[Array, "*batch A"]
) -> Float[Array, "*batch"]:
    """`<pi, ln pi - ln other>`; infinite if `other` is 0 where `pi` is not."""
    inside = pi > 0
    logs = jnp.log(jnp.where(inside, pi, 1)) - jnp.log(jnp.where(inside, other, 1))
    return jnp.sum(jnp.where(inside, pi * logs, 0), -1)
