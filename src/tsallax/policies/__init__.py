"""The regularised greedy step: from action values to a policy."""

from tsallax.policies.closed import (
    epsilon_greedy,
    greedy,
    kl_divergence,
    normalise,
    q_exp,
    q_log,
    sample,
    shannon_entropy,
    softmax,
    sparsemax,
    sparsemax_value,
    tsallis_entropy,
)
from tsallax.policies.exact import entmax
from tsallax.policies.tsallis import METHODS, Method, make_policy, tsallis_policy
from tsallax.policies.value import tsallis_value

__all__ = [
    "METHODS",
    "Method",
    "entmax",
    "epsilon_greedy",
    "greedy",
    "kl_divergence",
    "make_policy",
    "normalise",
    "q_exp",
    "q_log",
    "sample",
    "shannon_entropy",
    "softmax",
    "sparsemax",
    "sparsemax_value",
    "tsallis_entropy",
    "tsallis_policy",
    "tsallis_value",
]
