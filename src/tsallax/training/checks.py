"""Checks of a configuration alone, before anything is built from it.

They refuse wrong types and values, and settings that are valid one by one but too large: a billion
seeds or 100,000 layers would exhaust memory or time. Whether a run fits into the machine's memory
is checked once the shapes are known (`tsallax.training.build.check_memory`).
"""

import math
from typing import Any, Literal, get_args, get_origin

from tsallax.training.config import FIELDS, FOREIGN, NUMBERS, PRIORITIES, Config, foreign_options
from tsallax.training.presets import NAMED

MOST_CELLS = 10_000  # seeds x combinations of numbers in one run
MOST_LAYERS = 100
MOST_DRAWN = 2**28  # transitions drawn from the replay in one target period
MOST_FRAMES = 2**24  # steps of all environments of a cell in one rollout
MOST_EPISODES = 1_000_000  # of one evaluation
INT32 = 2**31 - 1  # compiled programs count in it
# What a field of this type takes; a bool, which to Python is an int, is no number.
KINDS: dict[type, tuple[str, tuple[type, ...]]] = {
    int: ("a whole number", (int,)),
    float: ("a number", (int, float)),
    bool: ("True or False", (bool,)),
}
COMPUTED = (*NUMBERS, "optimiser_eps")  # in float32
TINY, LARGEST = 2.0**-126, (2 - 2.0**-23) * 2.0**127  # normal float32


def check_kinds(config: Config) -> None:
    """Check the types of words, integers and tuples, which only Python callers can get wrong."""
    if config.preset not in (None, *NAMED):
        raise ValueError(
            f"preset must be one of {', '.join(NAMED)}, or a file NAME.toml: not {config.preset!r}"
        )
    for name, field in FIELDS.items():
        value = getattr(config, name)
        words = get_args(field.type) if get_origin(field.type) is Literal else ()
        if value is None:
            continue
        if words and value not in words:
            raise ValueError(f"{name} must be one of {', '.join(words)}, not {value!r}")
        if name in NUMBERS or name == "hidden":
            if not (isinstance(value, tuple) and value):
                raise ValueError(f"{name} must be a tuple of one or more numbers, not {value!r}")
            continue
        for kind, (called, allowed) in KINDS.items():
            if kind in (field.type, *get_args(field.type)) and type(value) not in allowed:
                raise ValueError(f"{name} must be {called}, not {value!r}")


def check_foreign(config: Config, agent: str) -> None:
    """Refuse options that this learner or this kind of agent does not have."""
    given = [n for n in foreign_options(config, agent) if getattr(config, n) is not None]
    if not given:
        return
    if given[0] not in FOREIGN[agent]:
        other = "replay" if config.learner == "parallel" else "parallel"
        raise ValueError(
            f"{given[0]} is no option of the {config.learner} learner: give learner {other} as well"
        )
    where = "" if agent == "value agent" else f" with {agent.removesuffix(' actor')} actions"
    raise ValueError(f"{given[0]} is no option of {config.algo}{where}")


def check_values(config: Config) -> None:
    for name, field in FIELDS.items():
        value, rule = getattr(config, name), field.metadata["rule"]
        values = () if value is None else value if field.metadata["grid"] else (value,)
        for x in values if rule else ():
            if not rule[1](x):
                raise ValueError(f"{name} must be {rule[0]}, not {x:g}")
        if field.metadata["grid"] and len({f"{x:g}" for x in values}) < len(values):
            raise ValueError(f"{name} has a value twice, to six digits")
    if not config.init_from and (config.init_cell is not None or config.init_weights != "best"):
        raise ValueError("init_weights and init_cell need init_from")
    if config.first_seed + config.seeds > 2**31:
        raise ValueError(f"seeds must be below 2^31: first_seed {config.first_seed} is too large")
    if config.policy in ("exact", "linear") and any(q <= 0 for q in config.q):
        raise ValueError(
            f"q must be positive for the {config.policy} policy; --policy paper takes any"
        )
    if any(type(width) is not int or width < 1 for width in config.hidden):
        raise ValueError(f"hidden widths must be whole and at least 1, not {config.hidden}")
    if config.loop == "host" and config.env.startswith("MinAtar/"):
        raise ValueError(f"{config.env} is compiled: it has no host loop")
    if config.loop == "compiled" and (config.stack or config.env_timeout):
        there = "" if config.env.startswith("MinAtar/") else ": give --loop host as well"
        raise ValueError(f"stack and env_timeout are options of the host loop{there}")
    if config.dueling and config.network == "own":
        raise ValueError("dueling is for built-in networks: build it into a custom one")
    if config.learner == "parallel":
        return
    if not config.prioritised and (given := [n for n in PRIORITIES if getattr(config, n)]):
        raise ValueError(f"{given[0]} is for a prioritised replay: give prioritised as well")
    if config.target_period % config.train_period:
        raise ValueError(
            f"target_period ({config.target_period}) must be a multiple of train_period "
            f"({config.train_period})"
        )
    if config.buffer < config.batch:
        raise ValueError(f"buffer ({config.buffer}) must hold a batch ({config.batch})")
    if config.buffer < (config.n_step or 1):
        raise ValueError(f"buffer ({config.buffer}) must hold n_step ({config.n_step}) transitions")
    if config.loop == "host" and config.buffer < 2:
        raise ValueError("buffer must be at least 2 on the host, not 1")


def check_limits(config: Config) -> None:
    """Refuse a configuration of valid types and ranges that is too large to be built."""
    for name in FIELDS:
        for x in _numbers(getattr(config, name)):
            if isinstance(x, int) and x > INT32:
                raise ValueError(f"{name} must be below 2^31, not {_short(x)}")
            if name in COMPUTED and not _fits_float32(x):
                raise ValueError(f"{name} = {x:g} is beyond float32, in which it is computed")
    _check("seeds x numbers", count_cells(config), MOST_CELLS, "runs side by side")
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


def count_cells(config: Config) -> int:
    """The number of cells of a configuration, computed without listing them."""
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
    """Returns whether `x` neither overflows nor underflows; infinity is valid (q = inf)."""
    return x == 0 or math.isinf(x) or TINY <= abs(x) <= LARGEST
