"""One transition, what every algorithm makes of it by hand, and how a reduction is checked.

A new algorithm adds its value to `GOLDEN`, with the arithmetic.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from tsallax.operators import get_algorithm, make_hparams, one_step, targets
from tsallax.operators.reductions import Reduction
from tsallax.operators.targets import beta_draw
from tsallax.policies import make_policy
from tsallax.types import Bootstrap

ln = np.log

# One transition, small enough to do by hand. With alpha = 1 and q = 2 the policies are
# sparsemax(1, 1/2, 0) = (3/4, 1/4, 0) at s and sparsemax(2, 1.8, 0) = (0.6, 0.4, 0) at s'.
# <pi,Q> = 7/8, <pi',Q'> = 1.92, H_2(pi) = (1 - 10/16)/2 = 3/16, H_2(pi') = (1 - 0.52)/2 = 0.24.
X = Bootstrap(
    Q=jnp.array([1.0, 0.5, 0.0]),
    a=jnp.asarray(1),
    r=jnp.asarray(0.1),
    discount=jnp.asarray(0.9),
    Z=jnp.array([2.0, 1.8, 0.0]),
    key=jax.random.key(3),
)
NUMBERS = {"q": 2.0, "alpha": 1.0, "beta": 0.8, "gamma": 0.9}
LSE, LSE_NEXT = ln(np.e + np.e**0.5 + 1), ln(np.e**2 + np.e**1.8 + 1)
SOFT, SOFT_NEXT = (
    np.exp(v - np.logaddexp.reduce(v)) for v in (np.array([1, 0.5, 0]), np.array([2, 1.8, 0]))
)
DRAW = float(beta_draw(jax.random.key(3), 2, 7))
DRAW_PRINTED = float(beta_draw(jax.random.key(3), 2, 9))

GOLDEN = {
    "dqn": 0.1 + 0.9 * 2,
    "soft-dqn": 0.1 + 0.9 * LSE_NEXT,
    "tsallis-dqn": 0.1 + 0.9 * 1.92,
    "al": 0.1 + 0.9 * 2 + 0.8 * (0.5 - 1),
    "pal": 0.1 + 0.9 * 2 + max(0.8 * (0.5 - 1), 0.9 * (1.8 - 2)),
    "pal-atari": 0.1 + 0.9 * 2 + 0.8 * max(0.5 - 1, 1.8 - 2),
    "clipped-al": 0.1 + 0.9 * 2,  # 0.5 is less than 0.8 of the best: no bonus
    "sal": 0.1 + 0.9 * 2 + 0.8 * (DRAW + 7 / 9) * (0.5 - 1),
    "sal-printed": 0.1 + 0.9 * 2 + 0.8 * (DRAW_PRINTED + 7 / 9) * (0.5 - 1),
    "mdqn": 0.1 + 0.9 * LSE_NEXT + 0.8 * max(0.5 - LSE, -1.0),
    "mt-dqn": 0.1 + 0.9 * 1.92 + 0.8 * ln(0.25 + 1e-8),
    "mt-dqn-qlog": 0.1 + 0.9 * 1.92 + 0.8 * (0.25 - 1),
    "cvi": 0.1 + 0.9 * SOFT_NEXT @ [2, 1.8, 0] + 0.8 * (0.5 - SOFT @ [1, 0.5, 0]),
    "cvi-mellowmax": 0.1 + 0.9 * (LSE_NEXT - ln(3)) + 0.8 * (0.5 - LSE + ln(3)),
    "tal": 0.1 + 0.9 * 1.92 + 0.8 * (0.5 - 0.875),
    "tal-v": 0.1 + 0.9 * 1.92 + 0.8 * (0.5 - 0.875 - 3 / 16),
    # -<pi', ln_2 pi'> = 1 - 0.52 = 0.48, without the factor k = 1/2 of the entropy.
    "mvi": 0.1 + 0.9 * (1.92 + 0.48) + 0.8 * (0.5 - 0.875),
}


def target(algorithm: str, x: Bootstrap = X, method="exact", **numbers):
    hp = make_hparams(algorithm, **{**NUMBERS, **numbers})
    return one_step(get_algorithm(algorithm))(x, hp, make_policy(method))


def check_reduction(edge: Reduction, monkeypatch) -> None:
    """At its numbers one is the other, and at those of this file it is not."""
    usual = target(edge.one)
    numbers = dict(edge.numbers)
    if (b := numbers.pop("b", None)) is not None:  # SAL's draw is 7/9 less than its b
        monkeypatch.setattr(targets, "beta_draw", lambda key, a, _: b - 7 / 9)
    other = target(edge.other, **numbers)
    np.testing.assert_allclose(target(edge.one, **numbers), other, rtol=1e-5)
    assert not math.isclose(usual, other, rel_tol=1e-3)
