"""Which schemes average out the errors of their iterations, and which do not?

The same Gaussian error is added to Q at every iteration of every scheme. The advantage (or log
policy) term sums the past with weights beta^j: gaps grow by 1/(1 - beta), errors by
1/sqrt(1 - beta^2). So noise should have the effect of noise / sqrt((1 + beta)/(1 - beta)) at
beta = 0.

    python examples/error_averaging.py
"""

import numpy as np

import study
from study import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION, YELLOW
from tsallax.tabular import garnet, optimal_value, solve

ALPHA, DRAWS, ITERATIONS, TAIL, BLOCK = 0.03, 12, 400, 200, 5
TITLE = "The advantage term averages errors away;\na regularised policy alone keeps them"
NOISES, SHOWN = (0.03, 0.1, 0.3, 1.0, 3.0), 0.3
TAL, MDQN = {"q": 2.0, "beta": 0.99}, {"beta": 0.99, "clip": -float("inf")}
SCHEMES = {  # algorithm, numbers, colour, width, style: the widest first, as lines may coincide
    "dqn": ("dqn", {}, BLACK, 5, "-"),
    "soft-dqn": ("soft-dqn", {}, ORANGE, 2.5, "-"),
    "tsallis-dqn, q = 2": ("tsallis-dqn", {"q": 2.0}, SKY, 1.2, "--"),
    "mdqn, beta = 0.99, clip = -1": ("mdqn", MDQN | {"clip": -1.0}, PURPLE, 1.5, "-"),
    "tal, q = 2, beta = 0.9": ("tal", TAL | {"beta": 0.9}, VERMILION, 1.5, "-"),
    "mdqn, beta = 0.99, no clip": ("mdqn", MDQN, GREEN, 6, "-"),
    "cvi, beta = 0.99": ("cvi", {"beta": 0.99}, YELLOW, 3.5, "-"),
    "al, beta = 0.99": ("al", {"beta": 0.99}, GREY, 2, "-"),
    "tal, q = 2, beta = 0.99": ("tal", TAL, BLUE, 1.2, "--"),
}


def gain(beta: float) -> float:
    """The factor by which noise can exceed that at beta = 0, if errors are independent."""
    return float(np.sqrt((1 + beta) / (1 - beta)))


def traces(name: str, noise: float, draws: int = DRAWS, iterations: int = ITERATIONS):
    """`max_s V* - V_pi` after each iteration, `mean_s` after the last: Garnet i, error seed i."""
    algo, numbers, *_ = SCHEMES[name]
    # At q = 2 every method is sparsemax; `linear` is the fastest.
    numbers = {"method": "linear", "alpha": ALPHA, "iterations": iterations, **numbers}
    mdps = [garnet(i) for i in range(draws)]
    runs = [solve(mdp, algo, noise=noise, seed=i, **numbers) for i, mdp in enumerate(mdps)]
    last = [np.mean(optimal_value(mdp) - run.V) for mdp, run in zip(mdps, runs, strict=True)]
    return np.array([run.errors for run in runs]), np.array(last)


def draw(axes, name: str, shown: np.ndarray, ends: np.ndarray) -> None:
    *_, colour, width, line = SCHEMES[name]
    blocks = shown.reshape(len(shown), -1, BLOCK).mean(-1)
    ticks = np.arange(BLOCK, ITERATIONS + 1, BLOCK)
    for ax, x, draws in zip(axes, (ticks, NOISES), (blocks, ends), strict=True):
        mean, error = study.mean_and_error(draws)
        ax.plot(x, mean, label=name.replace("beta", r"$\beta$"), color=colour, lw=width, ls=line)
        ax.fill_between(x, mean - error, mean + error, color=colour, alpha=0.15, lw=0)


def main() -> None:
    figure, (above, below) = study.two_panels(TITLE, 9.6)
    study.print_header("max over states, last 200 iterations", (f"noise {n:g}" for n in NOISES))
    ends = {}
    for name in SCHEMES:
        runs, last = zip(*(traces(name, noise) for noise in NOISES), strict=True)
        ends[name] = np.array(runs)[..., -TAIL:].mean(-1).T
        draw((above, below), name, runs[NOISES.index(SHOWN)], ends[name])
        study.print_row(name, ends[name])
        study.print_row("    last iteration alone, mean over states", np.array(last).T)
    for gained, label in ((gain(0.9), None), (gain(0.99), "dqn, noise x 4.4 and x 14.1\n(theory)")):
        x = np.multiply(NOISES, gained)
        below.plot(x, ends["dqn"].mean(0), ":", color=BLACK, lw=1.5, label=label)
    above.set(title=f"Noise {SHOWN}, means of {BLOCK} iterations", xlabel="iteration")
    above.set(ylabel=r"policy error $\max_s\, (V^*(s) - V_\pi(s))$  [return]", yscale="log")
    above.set_ylim(0.01, 60)
    below.set(title=r"Last 200 iterations: $\beta$ = 0.99 bears 14 times the noise", yscale="log")
    below.set(xlabel="standard deviation of the noise  [return]", xscale="log")
    below.set(xlim=(NOISES[0], NOISES[-1]), ylim=(0.001, 60))
    below.set_xticks(NOISES, NOISES)
    below.minorticks_off()
    figure.legend(*below.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    study.save(figure, "error_averaging.png")


if __name__ == "__main__":
    main()
