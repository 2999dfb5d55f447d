"""What the tests of the errata share."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from tsallax.operators import get_algorithm
from tsallax.policies import (
    make_policy,
    tsallis_policy,
)
from tsallax.tabular import iterate
from tsallax.types import HParams

KEY = jax.random.key(0)
Q_ROWS = jax.random.normal(KEY, (200, 4))  # with alpha = 1: supports of one to four actions
general = jax.jit(tsallis_policy, static_argnames="method")


def close(got, want, tolerance=1e-5):
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=tolerance, atol=tolerance)


def paper(Q, q, alpha=1.0, method="paper"):
    """The Tsallis policy at a traced q, so that one program a method serves this whole file."""
    Q = jnp.asarray(Q, jnp.float32)
    rows = general(jnp.broadcast_to(Q, Q_ROWS.shape), q, alpha, method=method)
    return rows if Q.ndim == 2 else rows[0]


def right(q, k=0.5):
    return k * q - k * q / (q - 1)


def printed(q):
    return q / 2 - q / (q - 2)


def float64(hp):
    return HParams(*(jnp.asarray(x, jnp.float64) for x in hp))


@partial(jax.jit, static_argnames="algo")
def operator(mdp, Q, hp, algo):
    """The algorithm's target with the paper's policy, averaged over the next states."""
    return iterate(mdp, Q, get_algorithm(algo), hp, make_policy("paper"), KEY)


slope = jax.jit(jax.jacfwd(operator, 1), static_argnames="algo")


def weight(q):
    """What a one-action support gets."""
    return (q / (2 * q - 2)) ** (1 / (q - 1))
