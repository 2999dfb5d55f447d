"""The contenders that try to solve each task, their settings, and how their time is measured."""

from typing import NamedTuple

COLD = "tsallax, nothing kept"
WARM = "tsallax, programs kept"
BOTH = ("cartpole", "breakout")
ALL = ("cartpole", "acrobot", "lunarlander", "breakout")


class Solver(NamedTuple):
    name: str
    script: str  # solve_*.py
    tasks: tuple[str, ...]
    peers: str = ""  # the virtual environment, if it is not tsallax's own
    again: str = ""  # name of a second run, which finds the cached programs of the first one
    checkout: str = ""  # the option with the path of its code, if it is not a package
    how: str = ""


SOLVERS = (
    Solver(
        COLD,
        "tsallax",
        ALL,
        again=WARM,
        how="`tsallax train CartPole-v1 --learner parallel --steps 3e5 --stop-at 475 "
        "--eval-episodes 100`, with `--steps 5e5` and the goal for Acrobot and LunarLander, and "
        "`tsallax train MinAtar/Breakout --learner parallel --steps 2e6 --stop-at 10 "
        "--eval-episodes 30`. The whole process counts, with its evaluations, every "
        "twentieth of the steps, and with the files and the picture that it writes at the end. "
        "*Programs kept* is the same command once more",
    ),
    Solver(
        "Stable-Baselines3 DQN",
        "sb3",
        ALL,
        peers="sb3",
        how="the settings of rl-baselines3-zoo, for their 50,000 steps on CartPole and 100,000 on "
        "Acrobot and LunarLander. The zoo has no MinAtar: there it has the network and the "
        "settings of the game's authors. An evaluation of 20 episodes without exploration comes "
        "every 2,500 steps (LunarLander: 5,000, Breakout: 10,000), and is left out of the time",
    ),
    Solver(
        "CleanRL PQN",
        "cleanrl",
        ("cartpole",),
        peers="cleanrl",
        checkout="cleanrl",
        how="`pqn.py`, unchanged and with its own settings (torch). It does not evaluate: what "
        "counts is the mean of the last 20 training episodes that it prints, which explore. Its "
        "network is fully connected, and has no MinAtar",
    ),
    Solver(
        "rejax PQN",
        "rejax",
        BOTH,
        peers="rejax",
        how="on CartPole the settings of its own file. It has none for MinAtar: there it has "
        "the settings of PQN's authors, and the network of the game's authors with each layer "
        "normalised. gymnax's Breakout is given six actions, a tenth of which are repeated; it "
        "ends after 1,000 steps. The loop of its `train` is compiled without the evaluation, of "
        "128 episodes, which is compiled apart and left out of the time",
    ),
    Solver(
        "purejaxql PQN",
        "purejaxql",
        BOTH,
        peers="rejax",
        checkout="purejaxql",
        how="the code of PQN's authors, unchanged, with the settings of its own files; Breakout as "
        "for rejax. It is one program that returns at the end: the time is that until it is "
        "compiled, and of its run the share that lies before the first evaluation at the goal. "
        "Evaluations count, with 20 environments instead of 128. Breakout ends after 3 of 10 "
        "million steps, with the rates of a run that has them all",
    ),
)
