"""A tabular study: a machine that wears out, solved exactly by several algorithms, with noise.

python examples/tabular.py
"""

import numpy as np

from tsallax.tabular import MDP, Solution, make_mdp, solve

STATES, RUN, SLOW, REPAIR = 6, 0, 1, 2
ALGORITHMS = {
    "dqn": {},
    "al": {"beta": 0.9},
    "mdqn": {"beta": 0.9},
    "tal": {"q": 2.0, "beta": 0.9},
}


def machine() -> MDP:
    """The reward falls with wear. Running wears fast, slow running less, a repair costs 1."""
    P = np.zeros((STATES, 3, STATES))
    r = np.zeros((STATES, 3))
    for wear in range(STATES):
        worse = min(wear + 1, STATES - 1)
        for action, speed, chance in ((RUN, 1.0, 0.6), (SLOW, 0.6, 0.2)):
            P[wear, action, worse] += chance
            P[wear, action, wear] += 1 - chance
            r[wear, action] = speed * (1 - wear / (STATES - 1))
        P[wear, REPAIR, 0] = 1
        r[wear, REPAIR] = -1
    return make_mdp(P, r, gamma=0.95)


def study(noise: float, iterations: int = 300) -> dict[str, Solution]:
    """Solve with Gaussian noise on Q in each iteration, the same for all algorithms."""
    mdp = machine()
    return {
        name: solve(mdp, name, alpha=0.1, iterations=iterations, noise=noise, **numbers)
        for name, numbers in ALGORITHMS.items()
    }


def main() -> None:
    for noise in (0.0, 0.3):
        print(f"\nnoise {noise}\n{'algorithm':12} error  action gap  where it repairs")
        for name, found in study(noise).items():
            error = found.errors[-100:].mean()  # max over states of V* - V_pi
            repairs = " ".join("x" if pi[REPAIR] > 0.5 else "." for pi in found.pi)
            print(f"{name:12} {error:5.2f}  {found.action_gap[-1]:10.2f}  {repairs}")


if __name__ == "__main__":
    main()
