"""Does it matter that the paper's approximate policy does not sum to one?

Its weights sum to c = (q/(2q-2))^(1/(q-1)) if the support is one action. Then beta = 0
(Tsallis-DQN) is value iteration with the discount c gamma, and beta near 1 (TAL) compensates for
most of it.

    python examples/normalisation.py
"""

from typing import Any, NamedTuple

import jax
import numpy as np

import study
from study import BLUE, GREEN, VERMILION
from tsallax.policies import Method, tsallis_policy
from tsallax.tabular import MDP, corridor, garnet, optimal_value, policy_value, solve

QS = {1.5: "3/2", 2.0: "2", 2.5: "5/2", 3.0: "3", 4.0: "4"}
ALPHA, GAMMA, SEEDS, ITERATIONS = 0.03, 0.99, 10, 500
LOOKS = {"paper": ("o-", VERMILION), "paper-normalised": ("s", BLUE), "exact": ("D", GREEN)}
PANELS = {
    garnet: "Garnet: forgets its start, so the horizon hardly matters",
    corridor: "Corridor: a far reward, so a short horizon costs a third",
}


class Outcome(NamedTuple):
    share: Any  # of the optimal return, with the policy renormalised for acting; one or an array
    weighed: Any  # the same with the paper's unnormalised weights, which are not a policy
    diverged: Any


def lone_weight(q: float) -> float:
    """`c`: the weight that the paper's policy gives to the only action of a support."""
    return (q / (2 * q - 2)) ** (1 / (q - 1))


def run(mdp: MDP, method: Method, beta: float, q: float) -> Outcome:
    """Iterate TAL's operator from Q = 0; at beta = 0 it is Tsallis-DQN's."""
    # A diverging Q grows up to 2.2-fold per iteration, to 1e174 in 500, which does not overflow.
    numbers = {"q": q, "alpha": ALPHA, "beta": beta, "iterations": ITERATIONS}
    solution = solve(mdp, "tal", method=method, **numbers)
    # Weights that sum to one keep |Q| below |r| / ((1 - gamma)(1 - beta)), 1e4 here.
    diverged = bool(np.abs(solution.Q).max() > 1e5)
    weighed = np.nan
    if method == "paper" and q >= 2:  # it does not exist if c gamma > 1
        with jax.enable_x64(True):
            weighed = float(weighed_value(mdp, solution.Q, q)) / optimal_value(mdp).mean()
    return Outcome(solution.share, weighed, diverged)


@jax.jit
def weighed_value(mdp: MDP, Q, q):
    return policy_value(mdp, tsallis_policy(Q, q, ALPHA, method="paper")).mean()


def measure(family, method: Method, beta: float) -> Outcome:
    """The outcomes on `SEEDS` random MDPs (rows), for each q (columns)."""
    runs = [[run(family(seed), method, beta, q) for q in QS] for seed in range(SEEDS)]
    return Outcome(*np.moveaxis(np.array(runs), -1, 0))


def draw(ax, i: int, method: Method, beta: float, outcome: Outcome) -> None:
    mean, error = study.mean_and_error(outcome.share)
    lost = np.any(outcome.diverged, 0)
    x = np.arange(len(QS)) + 0.11 * (i - 2.5)  # side by side, as most of them are equal
    form, colour = LOOKS[method]
    look = {"fmt": form, "color": colour, "mfc": colour if beta else "white"}
    name = rf"$\beta$ = {beta:g}"
    ax.errorbar(x, np.where(lost, np.nan, mean), error, label=f"{method}, {name}", **look)
    for at in [(left, 0.53 + 0.05 * beta) for left in x[lost]]:  # their share is meaningless
        ax.plot(*at, "x", ms=9, mew=2.5, color=colour)
        ax.annotate(f"  Q diverges at {name}", at, va="center", color=colour)


def main() -> None:
    figure, axes = study.two_panels(
        "Weights that sum to c < 1 make Tsallis-DQN short-sighted,\nbut not TAL"
    )
    study.print_header("share of the optimal return", (f"q = {q}" for q in QS.values()))
    for ax, (family, title) in zip(axes, PANELS.items(), strict=True):
        for i, (method, beta) in enumerate((m, beta) for m in LOOKS for beta in (0.0, 0.99)):
            outcome = measure(family, method, beta)
            draw(ax, i, method, beta, outcome)
            name = f"{family.__name__}, {method}, beta = {beta:g}"
            study.print_row(name, outcome.share, outcome.diverged)
            if method == "paper":
                study.print_row("    by its weights as they are", outcome.weighed)
        ax.set_xticks(range(len(QS)), [f"{n}\n{GAMMA * lone_weight(q):.3f}" for q, n in QS.items()])
        ax.set(title=title, ylim=(0.5, 1.02), xlabel=r"entropic index q, and below it $c\gamma$")
    print("* Q diverges: the share of the policy it has in the end says nothing")
    figure.supylabel("share of the optimal return (mean of 10 MDPs ± standard error)", fontsize=10)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    study.save(figure, "normalisation.png")


if __name__ == "__main__":
    main()
