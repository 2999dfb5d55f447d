"""One small shape for every test that only needs *a* run: its programs are compiled once a session.

Vary values (numbers, seeds, steps), not shapes: each shape is another program.
"""

from pathlib import Path
from typing import Any

from support.configs import paper
from tsallax import cli
from tsallax.training.config import Config

ENV = "CartPole-v1"
SHAPE = {"preset": "paper", "hidden": (8,), "batch": 8, "buffer": 100, "target_period": 40}
TIME_LIMIT = 15  # so that some episodes are truncated
# Three periods of four cells. No q with a closed form: one program serves all others.
TINY = {**SHAPE, "steps": 120, "seeds": 2, "q": (1.5, 3.0), "eval_every": 80, "eval_episodes": 2}
HOST = "tests/Naughty-v0"  # of support.host_envs


def config(env: str = ENV, **more: Any) -> Config:
    own = {"time_limit": TIME_LIMIT} if env == ENV else {}
    return paper(env, **{**TINY, **own, **more})


def flags(env: str = ENV, **more: Any) -> list[str]:
    """The options of the command line."""
    own = {"time_limit": TIME_LIMIT} if env == ENV else {}
    words = []
    for name, value in {**TINY, **own, **more}.items():
        several = value if isinstance(value, tuple) else (value,)
        words += [f"--{name.replace('_', '-')}", *map(str, several)]
    return words


def train(path: Path, env: str = ENV, **more: Any) -> Path:
    """A run's folder, by the command."""
    assert cli.main(["train", env, *flags(env, **more), "--out", str(path)]) == 0
    return path
