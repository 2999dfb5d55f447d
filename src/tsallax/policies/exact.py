"""The exact Tsallis policy for any entropic index q > 0.

`pi = argmax <pi,Q> + alpha H_q(pi)` satisfies, on its support, `ln_q pi(a) = Q(a)/t - psi` with
`t = alpha k q`. The probability m of a reference action determines all others,

    pi(a)^(q-1) = m^(q-1) + (q-1) (Q(a) - Q(ref)) / t,

and m is the root of `F(m) = sum_a pi(a) - 1`. The reference that makes the problem easy is

- q <= 2, the best action: `d pi(a)/dm = (pi(a)/m)^(2-q) <= 1`, and F is concave in m for q < 1
  (start left of the root, at 1/A) and convex for 1 < q <= 2 (start right of it, at 1);
- q > 2, the worst action of the support: again every slope is at most 1, and F is convex (start
  right of the root). With the usual unknown, the normaliser psi, slopes are unbounded there, and
  float32 solvers lose all precision.

So Newton's iteration is monotone, the slope of F is at least 1, and errors in m are not amplified.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from tsallax.policies.closed import softmax

# Measured over 1e5 hard cases (2 to 1,000 actions, gaps over 12 decades): 8 reach 1e-7 for all q.
NEWTON_STEPS = 9


def entmax(
    Q: Float[Array, "*batch A"], q: Float[Array, "*#batch 1"], t: Float[Array, "*#batch 1"]
) -> Float[Array, "*batch A"]:
    """`argmax_pi <pi,Q> + t/(q (q-1)) (1 - sum pi^q)` for finite q > 0 and t > 0; softmax at 1."""
    return _entmax(Q, q, t)


@jax.custom_jvp
def _entmax(Q, q, t):
    # The case q = 1 is handled inside, so that the derivative in q is right there too.
    return jnp.where(q == 1, softmax(Q, t), _solve(Q, jnp.where(q == 1, 2, q), t))


def _solve(Q, q, t):
    S, edge = _support(Q, q, t)
    top = jnp.max(Q, -1, keepdims=True)
    ref = jnp.where(q > 2, edge, top)
    e = q - 1
    log_gap = jnp.log(jnp.abs(e) * jnp.abs(Q - ref) / t)  # -inf at the reference and its ties

    def log_pi(log_m):
        """`ln pi = ln(m^(q-1) +- gap)/(q-1)`, in logarithms: m^(q-1) itself underflows."""
        own = e * log_m
        y = jnp.exp(-jnp.abs(own - log_gap))
        below = (q > 1) & (q <= 2)  # the only range in which pi(a)^(q-1) = m^(q-1) - gap
        head = jnp.where(below, own, jnp.maximum(own, log_gap))
        tail = jnp.log1p(jnp.where(below, jnp.where(log_gap < own, -y, -1), y))
        return jnp.where(S, (head + tail) / e, -jnp.inf)

    def newton(m):
        log_m = jnp.log(m)
        log_p = log_pi(log_m)
        F = jnp.sum(jnp.exp(log_p), -1, keepdims=True) - 1
        slopes = jnp.exp(jnp.where(log_p > -jnp.inf, (2 - q) * (log_p - log_m), -jnp.inf))
        return jnp.clip(m - F / jnp.sum(slopes, -1, keepdims=True), jnp.finfo(Q.dtype).tiny, 1)

    K = jnp.sum(S, -1, keepdims=True, dtype=Q.dtype)
    # For q > 2, pi(a) >= gap^(1/(q-1)) for the others, so the rest of 1 bounds m from above.
    rest = 1 - jnp.sum(jnp.where(S, jnp.exp(log_gap / e), 0), -1, keepdims=True)
    m = jnp.where(q > 2, jnp.clip(rest, jnp.finfo(Q.dtype).tiny, 1 / K), jnp.where(q < 1, 1 / K, 1))
    m = jax.lax.fori_loop(0, NEWTON_STEPS, lambda _, m: newton(m), m)  # faster than unrolled
    pi = jnp.exp(log_pi(jnp.log(m)))
    return pi / jnp.sum(pi, -1, keepdims=True)


def _support(
    Q: Float[Array, "*batch A"], q: Float[Array, "*#batch 1"], t: Float[Array, "*#batch 1"]
) -> tuple[Bool[Array, "*batch A"], Float[Array, "*batch 1"]]:
    """The support, and the value of its worst action: bisection on the rank, ceil(log2 A) steps.

    The i-th best action is in the support if, at probability 0, the better ones sum to less than 1:
    `sum_{Q(j) > Q(i)} ((q-1)(Q(j) - Q(i))/t)^(1/(q-1)) < 1`. For q < 1 all actions are.
    """
    e = q - 1
    ranked = jnp.sort(Q, -1, descending=True)
    low = jnp.zeros((*Q.shape[:-1], 1), jnp.int32)
    high = jnp.full_like(low, Q.shape[-1] - 1)
    for _ in range((Q.shape[-1] - 1).bit_length()):
        middle = (low + high + 1) // 2
        ref = jnp.take_along_axis(ranked, middle, -1)
        gap = jnp.where(Q > ref, e * (Q - ref) / t, 0)
        fits = jnp.sum(jnp.exp(jnp.log(gap) / e), -1, keepdims=True) < 1
        low, high = jnp.where(fits, middle, low), jnp.where(fits, high, middle - 1)
    edge = jnp.take_along_axis(ranked, low, -1)
    return (Q >= edge) | (q < 1), edge


@_entmax.defjvp
def _entmax_jvp(primals, tangents):
    """`d pi = s (g - <s,g>/sum s)`, `s = pi^(2-q)`, `g = d(Q/t) - d_q ln_q(pi) dq`."""
    Q, q, t = primals
    dQ, dq, dt = tangents
    pi = _entmax(Q, q, t)
    inside = pi > 0
    log_pi = jnp.log(jnp.where(inside, pi, 1))
    limit = jnp.log(jnp.finfo(Q.dtype).max) / 2  # the slope is infinite where pi -> 0 and q > 2
    s = jnp.where(inside, jnp.exp(jnp.minimum((2 - q) * log_pi, limit)), 0)
    gap = jnp.where(inside, Q - jnp.max(Q, -1, keepdims=True), 0)  # pi is invariant to an offset
    g = jnp.where(inside, dQ / t - gap * (dt / t**2) - q_log_slope(log_pi, q) * dq, 0)
    mean = jnp.sum(s * g, -1, keepdims=True) / jnp.sum(s, -1, keepdims=True)
    return pi, s * (g - mean)


def q_log_slope(log_x: Float[Array, "*batch A"], q: Float[Array, "*#batch 1"]):
    """`d ln_q(x)/dq = (ln x)^2 phi((q-1) ln x)`, `phi(w) = (w e^w - e^w + 1)/w^2`."""
    w = (q - 1) * log_x
    small = jnp.abs(w) < 0.05
    safe = jnp.where(small, 1, w)
    phi = (safe * jnp.exp(safe) - jnp.expm1(safe)) / safe**2
    series = 1 / 2 + w / 3 + w**2 / 8 + w**3 / 30 + w**4 / 144
    return log_x**2 * jnp.where(small, series, phi)
