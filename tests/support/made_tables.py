"""Tables of results made for tests of the claims."""

import numpy as np

from tsallax.experiments.evidence import Evidence
from tsallax.experiments.results import COLUMNS, Curve


def curve(*values, seeds=10, steps=100_000, gap=1.0, q_value=1.0, **labels):
    """Runs whose every return is the value of their seed, or the only one."""
    shape = (seeds, 50)
    columns = {name: np.full(shape, 1.0) for name in COLUMNS}
    columns["episode_return"] = np.broadcast_to(np.array(values, float)[:, None], shape).copy()
    columns["action_gap"] = np.broadcast_to(np.reshape(gap, (-1, 1)), shape).copy()
    columns["max_q"] = np.broadcast_to(np.reshape(q_value, (-1, 1)), shape).copy()
    columns["diverged"] = np.full(shape, -1.0)
    every = np.linspace(steps / 50, steps, 50).astype(int)
    return Curve({n: str(v) for n, v in labels.items()}, list(range(seeds)), every, columns)


RANDOM = curve(22, seeds=5, algo="dqn", env="CartPole-v1")


def fig1(mdqn=400, munchausen=22, **own):
    common = {"env": "CartPole-v1", "log_weight": "", **own}
    return [
        curve(mdqn, algo="mdqn", q=1, **common),
        curve(munchausen, algo="mt-dqn", q=2, **common),
        curve(9, algo="mt-dqn", q=2, **common | {"log_weight": "1"}),
    ]


def evidence(**tables):
    return Evidence({"quick": {"random": [RANDOM], **tables}})


def three(tsallis, munchausen, tal, **labels):
    common = {"env": "CartPole-v1", "policy": "paper", "log_weight": "", **labels}
    returns = {"tsallis-dqn": tsallis, "mt-dqn": munchausen, "tal": tal}
    return [curve(*np.atleast_1d(r), algo=algo, **common) for algo, r in returns.items()]
