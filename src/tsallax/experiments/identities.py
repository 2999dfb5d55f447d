"""The paper's identities on finite MDPs, through the deep agents' own targets, in float64."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tsallax import tabular
from tsallax.experiments.verdicts import HOLDS, NOT, Check
from tsallax.operators import get_algorithm, make_hparams
from tsallax.policies import kl_divergence, make_policy, softmax
from tsallax.types import HParams

TOLERANCE = 1e-10
ITERATIONS = 8
SEEDS = range(3)


def sequence(mdp: tabular.MDP, algorithm: str, **numbers: Any) -> list[jax.Array]:
    """Q_0 = 0, Q_1, ... of an algorithm."""
    hp = make_hparams(algorithm, gamma=mdp.gamma, **numbers)
    hp = HParams(*(jnp.asarray(x, jnp.float64) for x in hp))
    Qs = [jnp.zeros(mdp.r.shape)]
    for _ in range(ITERATIONS):
        Qs.append(_step(mdp, Qs[-1], hp, algorithm))
    return Qs


@partial(jax.jit, static_argnames="algorithm")
def _step(mdp: tabular.MDP, Q: jax.Array, hp: HParams, algorithm: str) -> jax.Array:
    target, policy = get_algorithm(algorithm).target, make_policy("exact")
    return tabular.iterate(mdp, Q, target, hp, policy, jax.random.key(0), 1)


def advantage_gap(mdp: tabular.MDP) -> float:
    """TAL at q = 1, with the soft value, against Munchausen: the largest difference of any Q."""
    one = sequence(mdp, "mdqn", alpha=0.3, beta=0.7, clip=-jnp.inf)
    two = sequence(mdp, "tal-v", q=1.0, alpha=0.3, beta=0.7, entropy=1.0)
    return float(np.max(np.abs(np.array(one) - np.array(two))))


def conservative_gap(mdp: tabular.MDP) -> float:
    """CVI against Munchausen: the largest difference of any policy."""
    pairs = zip(
        sequence(mdp, "cvi-mellowmax", alpha=0.3, beta=0.7),
        sequence(mdp, "mdqn", alpha=0.3, beta=0.7, clip=-jnp.inf),
        strict=True,
    )
    return max(float(jnp.max(jnp.abs(softmax(x, 0.3) - softmax(y, 0.3)))) for x, y in pairs)


def recursion_gap(mdp: tabular.MDP, tau: float = 0.3) -> float:
    """Q'_k = Q_k - tau ln pi_k against r + gamma P(<pi_{k+1}, Q'_k> - tau KL(pi_{k+1}||pi_k))."""
    Q = sequence(mdp, "mdqn", alpha=tau, beta=1.0, clip=-jnp.inf)
    pi = [softmax(Qk, tau) for Qk in Q]  # pi[k] is pi_{k+1}
    shifted = [Q[k] - tau * jnp.log(pi[k - 1]) for k in range(1, len(Q))]
    gaps = []
    for k in range(1, len(Q) - 1):
        value = jnp.sum(pi[k] * shifted[k - 1], -1) - tau * kl_divergence(pi[k], pi[k - 1])
        expected = mdp.r + mdp.gamma * jnp.einsum("sat,t->sa", mdp.P, value)
        gaps.append(float(jnp.max(jnp.abs(shifted[k] - expected))))
    return max(gaps)


def check(text: str, gap: Callable[[tabular.MDP], float]) -> Check:
    with jax.enable_x64(True):
        mdps = [
            *(tabular.garnet(seed, 7, 3, 2, 0.9) for seed in SEEDS),
            tabular.gridworld(gamma=0.8),
        ]
        largest = max(map(gap, mdps))
    return Check(HOLDS if largest < TOLERANCE else NOT, f"{text}: within {largest:.0e}")


def munchausen_is_advantage() -> list[Check]:
    return [
        check("TAL (q = 1, soft value) and Munchausen, Q", advantage_gap),
        check("CVI (mellowmax) and Munchausen, policies", conservative_gap),
    ]


def kl_recursion() -> list[Check]:
    return [check("Q - tau ln pi and the KL-regularised recursion", recursion_gap)]
