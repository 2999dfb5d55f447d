"""The policies as ONNX graphs, on a batch of action values; the numbers are constants.

The methods are those of `tsallax.policies`, which explains them. Sorting and bisection become sums
over all pairs of actions, and Newton's iteration is unrolled, as not every runtime supports loops.
"""

import math

import numpy as np

from tsallax.export.graph import Value
from tsallax.policies.exact import NEWTON_STEPS

TINY = float(np.finfo(np.float32).tiny)


def greedy(Q: Value) -> Value:
    """The greedy policy; ties share the probability equally."""
    best = Q.equals(Q.max()).as_float()
    return best / best.sum()


def softmax(Q: Value, tau: float) -> Value:
    return Q.graph.add("Softmax", (Q - Q.max()) / tau, axis=-1)


def sparsemax(Q: Value, t: float, num_actions: int) -> Value:
    """`[z - psi]+`, `z = Q/t`: the projection of z on the simplex."""
    z = (Q - Q.max()) / t
    count = np.array([num_actions])
    ranked, _ = z.graph.several("TopK", 2, z, count, axis=-1)
    total = z.graph.add("CumSum", ranked, np.array(-1))
    allowed = ranked * np.arange(1, num_actions + 1, dtype=np.float32) + 1 > total
    psi = (allowed.where(ranked, 0).sum() - 1) / allowed.as_float().sum()
    pi = (z - psi).relu()
    return pi / pi.sum()


def entmax(Q: Value, q: float, t: float, num_actions: int) -> Value:
    """`tsallax.policies.exact.entmax`, for q other than 1 and infinity."""
    e, below = q - 1, 1 < q <= 2
    inside = _support(Q, q, t, num_actions)
    ref = inside.where(Q, math.inf).min() if q > 2 else Q.max()
    log_gap = ((Q - ref).abs() * (abs(e) / t)).log()

    def on_support(x: Value, outside: float) -> Value:
        return inside.where(x, outside)

    def log_pi(log_m: Value) -> Value:
        own = log_m * e
        y = (0 - (own - log_gap).abs()).exp()
        if below:
            head, tail = own, (log_gap < own).where(0 - y, -1)
        else:
            head, tail = own.maximum(log_gap), y
        return on_support((head + tail.log1p()) / e, -math.inf)

    def newton(m: Value) -> Value:
        log_m = m.log()
        log_p = log_pi(log_m)
        excess = log_p.exp().sum() - 1
        slopes = (log_p > -math.inf).where((log_p - log_m) * (2 - q), -math.inf).exp()
        return (m - excess / slopes.sum()).clip(TINY, 1)

    if q > 2:
        rest = 1 - on_support((log_gap / e).exp(), 0.0).sum()
        m = rest.maximum(TINY).minimum(1 / inside.as_float().sum())
    else:  # start at 1, or at 1/A, the best action's least probability
        m = Q.max() * 0 + (1 if below else 1 / num_actions)
    for _ in range(NEWTON_STEPS):
        m = newton(m)
    pi = log_pi(m.log()).exp()
    return pi / pi.sum()


def _support(Q: Value, q: float, t: float, num_actions: int) -> Value:
    """The actions whose better ones sum to less than 1 (`exact._support`); all for q < 1."""
    if q < 1:
        return Q.equals(Q)
    gaps = Q.reshape(-1, 1, num_actions) - Q.reshape(-1, num_actions, 1)  # row i: Q(j) - Q(i)
    taken = (gaps * ((q - 1) / t)).relu() ** (1 / (q - 1))
    return (taken.sum() < 1).reshape(-1, num_actions)
