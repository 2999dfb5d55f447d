"""Finite Markov decision processes, in float64 on the host."""

from typing import NamedTuple

import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

Matrix = np.ndarray | Array


class MDP(NamedTuple):
    """Transition probabilities `P[s, a, s']`, rewards `r[s, a]`, discount."""

    P: Float[Matrix, "S A S"]
    r: Float[Matrix, "S A"]
    gamma: float


def make_mdp(P: ArrayLike, r: ArrayLike, gamma: float) -> MDP:
    """An MDP from a user's arrays, validated."""
    P, r = np.asarray(P, np.float64), np.asarray(r, np.float64)
    if P.ndim != 3 or P.shape[0] != P.shape[2] or 0 in P.shape:
        raise ValueError(f"P must have the shape (S, A, S), not {P.shape}")
    if r.shape != P.shape[:2]:
        raise ValueError(f"r must have the shape (S, A) = {P.shape[:2]}, not {r.shape}")
    if not (np.isfinite(P).all() and np.isfinite(r).all()):
        raise ValueError("P and r must be finite")
    if (P < 0).any():
        raise ValueError("P must not be negative")
    worst = np.unravel_index(np.abs(P.sum(-1) - 1).argmax(), r.shape)
    if abs(P[worst].sum() - 1) > 1e-9:
        s, a = (int(i) for i in worst)
        raise ValueError(f"each P[s, a] must sum to one; P[{s}, {a}] sums to {P[worst].sum():.6g}")
    if not 0 <= gamma < 1:
        raise ValueError(f"gamma must be in [0, 1), not {gamma}")
    return MDP(P, r, float(gamma))


def garnet(
    seed: int,
    states: int = 20,
    actions: int = 4,
    branching: int = 3,
    gamma: float = 0.99,
    density: float = 1.0,
) -> MDP:
    """A random MDP: from each (s, a) to `branching` states, chosen at random.

    In a share `density` of the states, the reward of each action is uniform on [0, 1), else 0.
    """
    rng = np.random.default_rng(seed)
    reached = rng.permuted(np.tile(np.arange(states), (states, actions, 1)), axis=-1)
    P = np.zeros((states, actions, states))
    np.put_along_axis(
        P, reached[..., :branching], rng.dirichlet(np.ones(branching), (states, actions)), -1
    )
    pays = rng.permutation(states) < density * states
    return make_mdp(P, pays[:, None] * rng.random((states, actions)), gamma)


def chain(length: int = 10, slip: float = 0.1, gamma: float = 0.99) -> MDP:
    """Moves to the left or right along a line; with probability `slip` in the other direction.

    The reward is 1 at the right end, and 0.1 for staying at the left end: a near and a far reward.
    """
    s = np.arange(length)
    left, right = np.maximum(s - 1, 0), np.minimum(s + 1, length - 1)
    P = np.zeros((length, 2, length))
    P[s, 0, left] += 1 - slip
    P[s, 0, right] += slip
    P[s, 1, right] += 1 - slip
    P[s, 1, left] += slip
    r = np.zeros((length, 2))
    r[0, 0], r[-1, 1] = 0.1, 1.0
    return make_mdp(P, r, gamma)


def corridor(
    seed: int,
    states: int = 20,
    actions: int = 4,
    pace: float = 0.4,
    near: float = 0.2,
    gamma: float = 0.99,
) -> MDP:
    """Random slow moves along a line: small rewards everywhere, the large one at the far end.

    Each (s, a) stays with probability `1 - pace`; else it goes left, stays or goes right by its own
    sample of Dirichlet(1, 1, 1). Rewards are uniform on [0, `near`), and 1 in the last state.
    Unlike a Garnet, which mixes in a few steps, it takes about 3 `states`/`pace` steps from end to
    end: the best policy depends on how far a scheme looks ahead.
    """
    if not 0 < pace <= 1:
        raise ValueError(f"pace must be in (0, 1], not {pace}")
    rng = np.random.default_rng(seed)
    s, a = np.ogrid[:states, :actions]
    P = np.zeros((states, actions, states))
    P[s, a, s] = 1 - pace
    moves = pace * rng.dirichlet(np.ones(3), (states, actions))
    for i, step in enumerate((-1, 0, 1)):
        P[s, a, np.clip(s + step, 0, states - 1)] += moves[..., i]
    r = near * rng.random((states, actions))
    r[-1] = 1
    return make_mdp(P, r, gamma)


def gridworld(rows: list[str] | None = None, slip: float = 0.1, gamma: float = 0.95) -> MDP:
    """Four moves on a map: `#` wall, `G` goal (reward 1), `X` pit (reward -1), others are floor.

    Goal and pit lead to an absorbing state with reward 0, which is the last one. With probability
    `slip` the move is one of the two at right angles.
    """
    rows = rows or ["....", ".#.X", "...G"]
    cells = [(y, x) for y, row in enumerate(rows) for x, c in enumerate(row) if c != "#"]
    if not cells or len({len(row) for row in rows}) != 1:
        raise ValueError("a map needs rows of one length and at least one cell that is no wall")
    index = {cell: s for s, cell in enumerate(cells)}
    moves, rest = ((-1, 0), (0, 1), (1, 0), (0, -1)), len(cells)
    P, r = np.zeros((rest + 1, 4, rest + 1)), np.zeros((rest + 1, 4))
    P[rest, :, rest] = 1
    for (y, x), s in index.items():
        if rows[y][x] in "GX":
            P[s, :, rest] = 1
            r[s] = 1 if rows[y][x] == "G" else -1
            continue
        for a in range(4):
            for turn, p in ((0, 1 - slip), (1, slip / 2), (3, slip / 2)):
                dy, dx = moves[(a + turn) % 4]
                P[s, a, index.get((y + dy, x + dx), s)] += p
    return make_mdp(P, r, gamma)
