"""(Approximate) dynamic programming with the deep agents' own terms, averaged exactly over P."""

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from tsallax.operators import Algorithm, get_algorithm, make_hparams
from tsallax.policies import Method, kl_divergence, make_policy, normalise
from tsallax.tabular.mdp import MDP
from tsallax.types import Bootstrap, HParams, Policy


class Solution(NamedTuple):
    """The result of `solve`, with traces whose entry i is after i + 1 iterations."""

    Q: Float[np.ndarray, "S A"]
    pi: Float[np.ndarray, "S A"]  # the policy of Q, renormalised where necessary
    V: Float[np.ndarray, "S"]  # its value, without entropy
    optimum: Float[np.ndarray, "S"]
    errors: Float[np.ndarray, "iterations"]  # max_s V*(s) - V_pi(s)
    kl: Float[np.ndarray, "iterations"]  # mean_s KL(pi_{i+1} || pi_i), inf where only pi_i is 0
    action_gap: Float[np.ndarray, "iterations"]  # mean_s Q(1) - Q(2)

    @property
    def share(self) -> float:
        """The policy's return as a share of the optimal one, both means over states.

        It is meaningful only if the optimal one is positive.
        """
        return float(self.V.mean() / self.optimum.mean())


def backup(
    mdp: MDP,
    Q: Float[Array, "S A"],
    Y: Float[Array, "S A"],
    algorithm: Algorithm,
    hp: HParams,
    policy: Policy,
) -> Float[Array, "S A"]:
    """`T Y = r + gamma P value(Y)`, where the value is under the policy of Q, not of Y."""
    V = jax.vmap(algorithm.value, (0, 0, None, None))(Q, Y, hp, policy)
    return jnp.asarray(mdp.r) + mdp.gamma * jnp.einsum("sat,t->sa", jnp.asarray(mdp.P), V)


def expected_bonus(
    mdp: MDP,
    Q: Float[Array, "S A"],
    algorithm: Algorithm,
    hp: HParams,
    policy: Policy,
    key: PRNGKeyArray,
) -> Float[Array, "S A"]:
    """`E_{s'}[bonus]` at every (s, a), as some bonuses depend on s' as well."""

    def one(Q_s, a, r, Q_next):
        x = Bootstrap(Q_s, a, r, jnp.asarray(mdp.gamma), Q_next, key)
        return algorithm.bonus(x, hp, policy)

    next_states = jax.vmap(one, (None, None, None, 0))
    every_action = jax.vmap(next_states, (None, 0, 0, None))
    every_state = jax.vmap(every_action, (0, None, 0, None))
    actions = jnp.arange(Q.shape[1])
    return jnp.sum(mdp.P * every_state(Q, actions, jnp.asarray(mdp.r), Q), -1)


def iterate(
    mdp: MDP,
    Q: Float[Array, "S A"],
    algorithm: Algorithm,
    hp: HParams,
    policy: Policy,
    key: PRNGKeyArray,
    m: int | float = 1,
) -> Float[Array, "S A"]:
    """`T^m Q + bonus(Q)` (eq. 11): value iteration at m = 1, policy iteration at m = inf."""
    T = partial(backup, mdp, Q, algorithm=algorithm, hp=hp, policy=policy)
    if math.isinf(m):
        Y = _affine_fixed_point(T, Q)
    else:
        Y = jax.lax.fori_loop(1, int(m), lambda _, Y: T(Y), T(Q)) if m > 1 else T(Q)
    return Y + expected_bonus(mdp, Q, algorithm, hp, policy, key)


def _affine_fixed_point(f, like: Float[Array, "S A"]) -> Float[Array, "S A"]:
    """The solution of `Y = f(Y)`, f affine."""
    n = like.size
    zero = jnp.zeros_like(like)
    slope = jax.jacfwd(f)(zero).reshape(n, n)
    return jnp.linalg.solve(jnp.eye(n) - slope, f(zero).reshape(n)).reshape(like.shape)


def policy_value(mdp: MDP, pi: Float[Array, "S A"]) -> Float[Array, "S"]:
    """`V_pi = (I - gamma P_pi)^{-1} r_pi`."""
    P = jnp.einsum("sa,sat->st", pi, jnp.asarray(mdp.P))
    r = jnp.sum(pi * mdp.r, -1)
    return jnp.linalg.solve(jnp.eye(r.shape[0]) - mdp.gamma * P, r)


def optimal_value(mdp: MDP) -> Float[np.ndarray, "S"]:
    """V*, by policy iteration."""
    best = mdp.r.argmax(-1)
    rows = np.arange(mdp.r.shape[0])
    while True:
        V = np.linalg.solve(np.eye(len(rows)) - mdp.gamma * mdp.P[rows, best], mdp.r[rows, best])
        Q = mdp.r + mdp.gamma * mdp.P @ V
        # Only a real improvement changes the policy, so that rounding cannot make it cycle.
        tiny = 1e-12 * max(1.0, np.abs(Q).max())
        better = np.where(Q.max(-1) > Q[rows, best] + tiny, Q.argmax(-1), best)
        if (better == best).all():
            return V
        best = better


def solve(
    mdp: MDP,
    algo: str = "tal",
    *,
    method: Method = "exact",
    m: int | float = 1,
    iterations: int = 1000,
    noise: float = 0.0,
    seed: int = 0,
    **numbers: Any,
) -> Solution:
    """Iterate an algorithm on an MDP from Q = 0, in float64.

    Args:
        mdp: the problem; its gamma is used.
        algo: a name in the table of algorithms.
        method: how the Tsallis policy is computed, see `tsallis_policy`.
        m: applications of the Bellman operator per iteration, 1 to infinity.
        iterations: the number of iterations.
        noise: standard deviation of the Gaussian error added to Q at each iteration.
        seed: seed of the errors (equal for all algorithms) and of SAL's draws.
        **numbers: q, alpha, beta and every other field of `HParams`.
    """
    if not (m >= 1 and (math.isinf(m) or m == int(m))):
        raise ValueError(f"m must be a whole number from 1 to infinity, not {m}")
    if iterations < 1 or noise < 0:
        raise ValueError("iterations must be at least 1, and noise not negative")
    if "gamma" in numbers:
        raise ValueError("gamma belongs to the MDP")
    row = get_algorithm(algo)
    with jax.enable_x64(True):
        hp = make_hparams(algo, gamma=mdp.gamma, **numbers)
        hp = HParams(*(jnp.asarray(x, jnp.float64) for x in hp))
        optimum = optimal_value(mdp)
        keys = jax.random.split(jax.random.key(seed), iterations)
        Q, pi, V, traces = _run(mdp, hp, optimum, noise, keys, row, make_policy(method), m)
        return Solution(*(np.asarray(x) for x in (Q, pi, V, optimum, *traces)))


@partial(jax.jit, static_argnames=("row", "tsallis", "m"))
def _run(mdp, hp, optimum, noise, keys, row, tsallis, m):
    """All iterations as one program, shared by all MDPs of one size and all numbers."""

    def act(Q):
        return normalise(jax.vmap(row.policy or tsallis, (0, None))(Q, hp), Q)

    def step(carry, key):
        Q, pi = carry
        k_error, k_target = jax.random.split(key)
        Y = iterate(mdp, Q, row, hp, tsallis, k_target, m)
        Y = Y + noise * jax.random.normal(k_error, Y.shape)
        new, top = act(Y), jax.lax.top_k(Y, min(2, Y.shape[-1]))[0]
        error = jnp.max(optimum - policy_value(mdp, new))
        kl = jnp.mean(kl_divergence(new, pi))
        return (Y, new), (error, kl, jnp.mean(top[:, 0] - top[:, -1]))

    start = jnp.zeros(mdp.r.shape)
    (Q, pi), traces = jax.lax.scan(step, (start, act(start)), keys)
    return Q, pi, policy_value(mdp, pi), traces
