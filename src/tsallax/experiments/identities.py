"""The paper's identities on finite MDPs, by the deep agents' own terms, in float64."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from tsallax import tabular
from tsallax.operators import get_algorithm, make_hparams
from tsallax.policies import kl_divergence, make_policy, softmax
from tsallax.types import HParams

TOLERANCE = 1e-10
ITERATIONS = 8
SEEDS = range(3)
TAU, BETA = 0.3, 0.7
# Compilation takes seconds and running takes milliseconds, so optimisation is switched off.
COMPILER_OPTIONS = {"xla_backend_optimization_level": 0}


class Identity(NamedTuple):
    """A pair that should be equal, and the largest difference found."""

    text: str
    gap: float

    @property
    def holds(self) -> bool:
        return self.gap < TOLERANCE


def sequence(mdp: tabular.MDP, algorithm: str, **numbers: Any) -> Float[Array, "iterations S A"]:
    """Q_0 = 0, Q_1, ... of an algorithm with the softmax policy: every identity is at q = 1."""
    hp = make_hparams(algorithm, gamma=mdp.gamma, **numbers)
    hp = HParams(*(jnp.asarray(x, jnp.float64) for x in hp))
    row, policy = get_algorithm(algorithm), make_policy("exact", 1.0)

    def step(Q, _):
        Q = tabular.iterate(mdp, Q, row, hp, policy, jax.random.key(0), 1)
        return Q, Q

    start = jnp.zeros(mdp.r.shape)
    return jnp.concatenate([start[None], jax.lax.scan(step, start, None, ITERATIONS)[1]])


def munchausen_gaps(mdp: tabular.MDP) -> list[Array]:
    """Compare TAL with the soft value (by Q) and CVI (by policies) with Munchausen."""
    munchausen = sequence(mdp, "mdqn", alpha=TAU, beta=BETA, clip=-jnp.inf)
    tal = sequence(mdp, "tal-v", q=1.0, alpha=TAU, beta=BETA, entropy=1.0)
    cvi = sequence(mdp, "cvi-mellowmax", alpha=TAU, beta=BETA)
    return [_gap(munchausen, tal), _gap(softmax(munchausen, TAU), softmax(cvi, TAU))]


def recursion_gaps(mdp: tabular.MDP) -> list[Array]:
    """Q'_k = Q_k - tau ln pi_k versus r + gamma P(<pi_{k+1}, Q'_k> - tau KL(pi_{k+1}||pi_k))."""
    Q = sequence(mdp, "mdqn", alpha=TAU, beta=1.0, clip=-jnp.inf)
    pi = softmax(Q, TAU)  # pi[k] is pi_{k+1}
    shifted = Q[1:] - TAU * jnp.log(pi[:-1])
    value = jnp.sum(pi[1:-1] * shifted[:-1], -1) - TAU * kl_divergence(pi[1:-1], pi[:-2])
    expected = jnp.asarray(mdp.r)[None] + mdp.gamma * jnp.einsum("sat,kt->ksa", mdp.P, value)
    return [_gap(shifted[1:], expected)]


def largest_gaps(gaps: Callable[[tabular.MDP], list[Array]]) -> list[float]:
    """The largest gaps over random MDPs and a gridworld of the same size, in one program."""
    grid = tabular.gridworld(gamma=0.8)
    states, actions = grid.r.shape
    mdps = [*(tabular.garnet(seed, states, actions, 2, 0.9) for seed in SEEDS), grid]
    stacked = [np.stack(part) for part in zip(*mdps, strict=True)]

    def every(P, r, gamma):
        return jnp.stack(gaps(tabular.MDP(P, r, gamma)))

    with jax.enable_x64(True):
        found = jax.jit(jax.vmap(every), compiler_options=COMPILER_OPTIONS)(*stacked)
    return np.max(np.asarray(found), 0).tolist()


def munchausen_is_advantage() -> list[Identity]:
    """The identities of claim C13."""
    advantage, conservative = largest_gaps(munchausen_gaps)
    return [
        Identity("TAL (q = 1, soft value) and Munchausen, Q", advantage),
        Identity("CVI (mellowmax) and Munchausen, policies", conservative),
    ]


def kl_recursion() -> list[Identity]:
    """The identity of claim C14."""
    (gap,) = largest_gaps(recursion_gaps)
    return [Identity("Q - tau ln pi and the KL-regularised recursion", gap)]


def _gap(x: Array, y: Array) -> Array:
    return jnp.max(jnp.abs(x - y))
