"""Slow, plain, float64: what the library's answers are held against."""

import numpy as np


def tsallis_policy(Q, q: float, alpha: float, k: float = 0.5) -> np.ndarray:
    """The exact Tsallis policy of rows of values, by bisection.

    The unknown is the probability m of a reference action: the best one, or for q > 2 the worst
    one of the support, since there the normaliser itself is ill-conditioned even in float64.
    """
    Q = np.asarray(Q, np.float64)
    top = Q.max(-1, keepdims=True)
    if np.isinf(q):
        return (top == Q) / (top == Q).sum(-1, keepdims=True)
    t = alpha * k * q
    if q == 1:
        weights = np.exp((Q - top) / t)
        return weights / weights.sum(-1, keepdims=True)
    e = q - 1
    with np.errstate(divide="ignore", over="ignore"):
        inside = np.array([_support(row, e, t) for row in Q])
        ref = np.where(inside, Q, np.inf).min(-1, keepdims=True) if q > 2 else top
        log_gap = np.log(np.abs(e * (Q - ref) / t))  # each gap from Q itself: no digits are lost

        def probabilities(m):
            own = e * np.log(m)
            if 1 < q <= 2:
                rest = np.maximum(-np.exp(log_gap - own), -1)
                return np.where(inside, m * np.exp(np.log1p(rest) / e), 0)
            return np.where(inside, np.exp(np.logaddexp(own, log_gap) / e), 0)

        low, high = np.full_like(top, 1e-300), np.ones_like(top)
        while (high - low).max() > 2e-16:
            middle = (low + high) / 2
            above = probabilities(middle).sum(-1, keepdims=True) > 1
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        return probabilities(high)


def _support(Q: np.ndarray, e: float, t: float) -> np.ndarray:
    """An action is in if the better ones leave it something when it gets nothing.

    The better it is the less they need, so that the worst one inside is found by bisection.
    """
    if e < 0:
        return np.ones(len(Q), bool)
    ordered = np.sort(Q)
    low, high = 0, len(Q) - 1  # the best one is always in
    while low < high:
        middle = (low + high) // 2
        gaps = np.maximum(Q - ordered[middle], 0)  # how much better is each
        if np.exp(np.log(e * gaps / t) / e).sum() < 1:
            high = middle
        else:
            low = middle + 1
    return ordered[low] <= Q
