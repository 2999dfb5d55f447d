"""What no run can have: settings that are valid one by one, but enormous.

They are refused from the configuration alone, before anything is built from it: a list of a billion
seeds, or a network of 100,000 layers, would fill the memory or the day. What fits a machine is
another matter, and is checked once the shapes are known (`tsallax.training.build.check_memory`).
"""

import math
from typing import Any

from tsallax.training.config import FIELDS, NUMBERS, Config

MOST_CELLS = 10_000  # seeds x combinations of numbers, of one run
MOST_LAYERS = 100
MOST_DRAWN = 2**28  # transitions drawn from the replay in one target period
MOST_FRAMES = 2**24  # steps of all environments of a cell in one rollout
MOST_EPISODES = 1_000_000  # of one evaluation
INT32 = 2**31 - 1  # compiled programs count in it
TINY, LARGEST = 2.0**-126, (2 - 2.0**-23) * 2.0**127  # normal float32


def check_limits(config: Config) -> None:
    """Refuse a configuration of the right kinds and ranges that is too large to be built."""
    for name in FIELDS:
        for x in _numbers(getattr(config, name)):
            if isinstance(x, int) and x > INT32:
                raise ValueError(f"{name} must be below 2^31, not {_short(x)}")
            if name in NUMBERS and not _fits_float32(x):
                raise ValueError(f"{name} = {x:g} is beyond float32, in which it is computed")
    _check("seeds x numbers", cells_of(config), MOST_CELLS, "runs side by side")
    _check("hidden", len(config.hidden), MOST_LAYERS, "layers")
    _check("eval_episodes", config.eval_episodes, MOST_EPISODES, "episodes")
    if config.learner == "parallel":
        frames = config.num_envs * config.rollout
        _check("num_envs x rollout", frames, MOST_FRAMES, "steps per rollout")
        _check("num_envs x rollout x epochs", frames * config.epochs, INT32, "transitions")
    else:
        updates = -(-config.target_period // config.train_period) * config.updates
        drawn = updates * config.batch * (config.n_step or 1)
        _check("a target period", drawn, MOST_DRAWN, "transitions drawn")


def cells_of(config: Config) -> int:
    """How many runs side by side a configuration stands for."""
    return config.seeds * math.prod(len(getattr(config, name) or (0,)) for name in NUMBERS)


def _check(what: str, found: int, most: int, unit: str) -> None:
    if found > most:
        raise ValueError(f"{what}: {_short(found)} {unit} are too many, at most {most:,}")


def _short(x: int) -> str:
    return f"{x:,}" if x < 10**12 else f"{x:.1e}"


def _numbers(value: Any) -> tuple[int | float, ...]:
    values = value if isinstance(value, tuple) else (value,)
    return tuple(x for x in values if isinstance(x, int | float) and not isinstance(x, bool))


def _fits_float32(x: int | float) -> bool:
    """Infinity does (q = inf is greedy); a number that would become infinite, or 0, does not."""
    return x == 0 or math.isinf(x) or TINY <= abs(x) <= LARGEST
