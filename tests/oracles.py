"""Slow, plain, float64: what the library's answers are held against."""

import numpy as np


def tsallis_policy(Q, q: float, alpha: float, k: float = 0.5) -> np.ndarray:
    """The exact Tsallis policy of one row of values, by bisection.

    The unknown is the probability m of a reference action: the best one, or for q > 2 the worst
    one of the support, since there the normaliser itself is ill-conditioned even in float64.
    """
    Q = np.asarray(Q, np.float64)
    if np.isinf(q):
        return (Q == Q.max()) / (Q == Q.max()).sum()
    t = alpha * k * q
    if q == 1:
        return np.exp((Q - Q.max()) / t) / np.exp((Q - Q.max()) / t).sum()
    e = q - 1
    with np.errstate(divide="ignore", over="ignore"):
        inside = np.ones(len(Q), bool)
        if q > 1:
            ranked = np.unique(Q)
            need = [np.exp(np.log(e * (Q[Q > worst] - worst) / t) / e).sum() for worst in ranked]
            inside = ranked[np.flatnonzero(np.array(need) < 1)[0]] <= Q
        ref = Q[inside].min() if q > 2 else Q.max()
        log_gap = np.log(np.abs(e * (Q - ref) / t))  # each gap from Q itself: no digits are lost

        def probabilities(m):
            own = e * np.log(m)
            if 1 < q <= 2:
                rest = np.maximum(-np.exp(log_gap - own), -1)
                return np.where(inside, m * np.exp(np.log1p(rest) / e), 0)
            return np.where(inside, np.exp(np.logaddexp(own, log_gap) / e), 0)

        low, high = 1e-300, 1.0
        while high - low > 2e-16:
            middle = (low + high) / 2
            low, high = (low, middle) if probabilities(middle).sum() > 1 else (middle, high)
        return probabilities(high)
