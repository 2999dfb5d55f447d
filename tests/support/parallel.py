"""What the tests of the parallel learner share."""

import jax.numpy as jnp
import pytest

from tsallax.networks import Network
from tsallax.operators import ALGORITHMS

SOME = ("dqn", "tal", "mdqn")  # the others are marked slow: each of them is compiled
OTHERS = [n for n in ALGORITHMS if n not in SOME and not n.startswith("sal")]
EVERY = [*SOME, *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)]


def tabulated(shape: tuple[int, ...] = (5, 2)) -> Network:
    """A table in the place of a network."""
    return Network(lambda key: jnp.zeros(shape), lambda params, x: jnp.tensordot(x, params, 1))
