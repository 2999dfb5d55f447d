"""The paper's approximations of the Tsallis policy, by a first-order expansion of the root.

All take `z = Q/alpha`. docs/errata.md discusses the errors in the text.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from tsallax.policies.closed import normalise, sparsemax


def paper_policy(
    z: Float[Array, "*batch A"], q: Float[Array, "*#batch 1"], k: Float[Array, "*#batch 1"]
) -> Float[Array, "*batch A"]:
    """`[z - psi~]+^(1/(q-1))` (eq. 7), psi~ with the appendix's constant `kq - kq/(q-1)`.

    It does not sum to one: the expansion drops the factor `(q-1)/(kq)`.
    """
    return _root(z, q, k, _constant(q, k))


def paper_normalised_policy(
    z: Float[Array, "*batch A"], q: Float[Array, "*#batch 1"], k: Float[Array, "*#batch 1"]
) -> Float[Array, "*batch A"]:
    """`paper_policy` divided by its sum, in logarithms, as the root overflows near q = 1.

    It is greedy where all weights are 0.
    """
    inside, bracket = _bracket(z, q, k, _constant(q, k))
    root = jnp.where(inside, jnp.log(bracket) / (q - 1), -jnp.inf)
    top = jnp.max(root, -1, keepdims=True)
    return normalise(jnp.exp(root - jnp.where(top > -jnp.inf, top, 0)), z)


def printed_policy(
    z: Float[Array, "*batch A"], q: Float[Array, "*#batch 1"], k: Float[Array, "*#batch 1"]
) -> Float[Array, "*batch A"]:
    """Eq. 7 with the main text's constant, `q/2 - q/(q-2)` at k = 1/2: wrong, for comparison."""
    return _root(z, q, k, k * q - 2 * k * q / (q - 2))


def literal_policy(
    z: Float[Array, "*batch A"], q: Float[Array, "*#batch 1"], k: Float[Array, "*#batch 1"]
) -> Float[Array, "*batch A"]:
    """Eq. 7 taken literally: `[z - psi~]+^(1/(q-1))` of *every* action, in S or not.

    The text uses S only in psi~, and eq. 7 has no indicator of it. Where C > 0 (q > 2) an action
    outside S may lie above psi~: at q = 3, with two actions, up to a gap of 0.75 alpha.
    """
    z, constant = z - jnp.max(z, -1, keepdims=True), _constant(q, k)
    psi = _threshold(z, *_support(z, k * q, constant), k * q, constant)
    above = z > psi
    return jnp.where(above, jnp.where(above, z - psi, 1) ** (1 / (q - 1)), 0)


def linear_policy(
    z: Float[Array, "*batch A"], q: Float[Array, "*#batch 1"], k: Float[Array, "*#batch 1"]
) -> Float[Array, "*batch A"]:
    """The expansion itself, `1 + ((z - psi~)(q-1)/(kq) - 1)/(q-1)`, is `sparsemax(z/(kq))`."""
    return sparsemax(z / (k * q))


def _constant(q, k):
    """The appendix's constant C."""
    return k * q - k * q / (q - 1)


def _root(z, q, k, constant):
    """`[z - psi~]+^(1/(q-1))` on S; 0 outside S."""
    inside, bracket = _bracket(z, q, k, constant)
    return jnp.where(inside, bracket ** (1 / (q - 1)), 0)


def _bracket(z, q, k, constant) -> tuple[Bool[Array, "*batch A"], Float[Array, "*batch A"]]:
    """S, and `z - psi~` on it, `psi~ = (sum_S z - kq)/K + constant`; 1 outside S."""
    z = z - jnp.max(z, -1, keepdims=True)
    S, K = _support(z, k * q, constant)
    psi = _threshold(z, S, K, k * q, constant)
    # A bracket that rounds to 0 counts as outside S: for q < 1 its root would be infinite.
    inside = S & (z > psi)
    return inside, jnp.where(inside, z - psi, 1)


def _threshold(z, S, K, kq, constant) -> Float[Array, "*batch 1"]:
    """`psi~ = (sum_S z - kq)/K + constant`."""
    return (jnp.sum(jnp.where(S, z, 0), -1, keepdims=True) - kq) / K + constant


def _support(z, kq, constant) -> tuple[Bool[Array, "*batch A"], Float[Array, "*batch 1"]]:
    """The i best actions for the largest i with `kq + i z_(i) > sum_{j<=i} z_(j) + i constant`.

    A tie at the edge is broken by the lower index. K is at least 1, also where S is empty.
    """
    order = jnp.argsort(z, -1, descending=True, stable=True)
    ranked = jnp.take_along_axis(z, order, -1)
    i = jnp.arange(1, z.shape[-1] + 1, dtype=z.dtype).reshape((1,) * (z.ndim - 1) + (-1,))
    allowed = kq + i * ranked > jnp.cumsum(ranked, -1) + i * constant
    K = jnp.max(jnp.where(allowed, i, 0), -1, keepdims=True)
    rank = jnp.argsort(order, -1)
    return rank < K, jnp.maximum(K, 1)
