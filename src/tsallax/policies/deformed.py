"""The q-logarithm and the q-exponential, in the convention of the paper's future work.

`ln_q x = (x^(q-1) - 1)/(q-1)` and its inverse `exp_q x = [1 + (q-1) x]+^(1/(q-1))`: the natural
pair at q = 1. (Another convention in the literature writes `2 - q` for this `q`.)
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from tsallax.types import Number


def q_log(x: Float[Array, "..."], q: Number) -> Float[Array, "..."]:
    """`ln_q x = (x^(q-1) - 1)/(q-1)`; 0 at q = inf for x in (0, 1]."""
    e = jnp.asarray(q - 1, x.dtype)
    regular = (e != 0) & jnp.isfinite(e)
    safe = jnp.where(regular, e, 1)
    # expm1 keeps full precision near q = 1, where the quotient is 0/0.
    return jnp.where(regular, jnp.expm1(safe * jnp.log(x)) / safe, jnp.where(e == 0, jnp.log(x), 0))


def q_exp(x: Float[Array, "..."], q: Number) -> Float[Array, "..."]:
    """`exp_q x = [1 + (q-1) x]+^(1/(q-1))`, the inverse of `q_log`."""
    e = jnp.asarray(q - 1, x.dtype)
    safe = jnp.where(e == 0, 1, e)
    return jnp.where(e == 0, jnp.exp(x), jnp.exp(jnp.log1p(jnp.maximum(safe * x, -1)) / safe))
