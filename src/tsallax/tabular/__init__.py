"""The theory: finite MDPs on which the deep targets are iterated exactly."""

from tsallax.tabular.iterate import (
    Solution,
    apply_target,
    iterate,
    optimal_value,
    policy_value,
    solve,
)
from tsallax.tabular.mdp import MDP, chain, corridor, garnet, gridworld, make_mdp

__all__ = [
    "MDP",
    "Solution",
    "apply_target",
    "chain",
    "corridor",
    "garnet",
    "gridworld",
    "iterate",
    "make_mdp",
    "optimal_value",
    "policy_value",
    "solve",
]
