"""Finite MDPs on which the deep agents' targets are iterated exactly, to test the theory."""

from tsallax.tabular.iterate import (
    Solution,
    backup,
    expected_bonus,
    iterate,
    optimal_value,
    policy_value,
    solve,
)
from tsallax.tabular.mdp import MDP, chain, corridor, garnet, gridworld, make_mdp

__all__ = [
    "MDP",
    "Solution",
    "backup",
    "chain",
    "corridor",
    "expected_bonus",
    "garnet",
    "gridworld",
    "iterate",
    "make_mdp",
    "optimal_value",
    "policy_value",
    "solve",
]
