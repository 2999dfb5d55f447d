"""How a configuration is filled in and checked: from what was given to the values in effect."""

import dataclasses
from typing import Any, Literal, get_args, get_origin

from tsallax.training.config import FIELDS, FOLLOWING, NUMBERS, ONLY, Config
from tsallax.training.limits import check_limits
from tsallax.training.presets import COMMON, OPTIMISER_EPS, PARALLEL, PRESETS, silent_choices


def resolve(config: Config) -> Config:
    """Fill in everything that was not given, and refuse what cannot be run."""
    from tsallax import envs
    from tsallax.operators.table import get_algorithm

    if not config.env:
        raise ValueError("which environment? `tsallax list` names them")
    _check_kinds(config)
    row = get_algorithm(config.algo)
    config = dataclasses.replace(config, env=envs.canonical(config.env))
    kind = envs.kind_of(config.env)
    games = config.env.startswith("MinAtar/")
    preset = config.preset or ("atari" if kind == "atari" else "minatar" if games else "gym")
    filling: dict[str, Any] = COMMON | PRESETS[preset]
    filling |= silent_choices(config.choices, preset, config.head or filling["head"])
    if preset == "gym" and config.env.startswith("CartPole"):
        filling["target_period"] = 1000
    if config.learner == "parallel":
        filling |= PARALLEL[preset]
    filling |= {name: (value,) for name, value in row.defaults.items()}
    filling |= {"preset": preset, "loop": "compiled" if kind == "native" else "host"}
    if kind != "atari":
        filling.pop("episodic_life", None)
    config = _fill(config, filling)
    config = _fill(config, {"optimiser_eps": OPTIMISER_EPS[config.optimiser]})
    _check_values(config)
    check_limits(config)
    if row.policy and config.q != filling["q"]:
        raise ValueError(f"{config.algo} has a policy of its own, whatever q: leave q out")
    return _normal_form(config)


def _fill(config: Config, filling: dict[str, Any]) -> Config:
    foreign = ONLY["replay" if config.learner == "parallel" else "parallel"]
    if given := [name for name in foreign if getattr(config, name) is not None]:
        raise ValueError(f"{given[0]} is no option of the {config.learner} learner")
    names = [n for n in FIELDS if n in filling and n not in (*FOLLOWING, *foreign)]
    open_fields = {name: filling[name] for name in names if getattr(config, name) is None}
    return dataclasses.replace(config, **open_fields)


def _normal_form(config: Config) -> Config:
    """Equal runs have equal configurations: whole blocks of steps, and no number said twice."""
    own: dict[str, Any] = {}
    if config.k is not None and all(config.k == (1.0 if q == 1 else 0.5,) for q in config.q):
        own["k"] = None
    if config.log_weight == config.alpha and len(config.alpha) == 1:
        own["log_weight"] = None
    if config.stop_at is not None and not config.eval_every:
        own["eval_every"] = -(-config.steps // 20)
    own |= whole_rollouts(config) if config.learner == "parallel" else _whole_blocks(config)
    if config.schedule_steps == own["steps"]:
        own["schedule_steps"] = None
    return dataclasses.replace(config, **own)


def _whole_blocks(config: Config) -> dict[str, int]:
    """The first update needs at least one batch."""
    period = config.train_period
    whole = {"warmup": max(config.warmup, config.batch), "steps": config.steps}
    whole = {name: -(-steps // period) * period for name, steps in whole.items()}
    if whole["steps"] <= whole["warmup"]:
        raise ValueError(
            f"{config.steps} steps make no update: the first one comes after {whole['warmup']}, "
            "a batch or the warm-up"
        )
    return whole


def _check_kinds(config: Config) -> None:
    """Words, whole numbers and tuples: the command line has them by itself, Python may not."""
    for name, field in FIELDS.items():
        value = getattr(config, name)
        words = get_args(field.type) if get_origin(field.type) is Literal else ()
        if value is None:
            continue
        if words and value not in words:
            raise ValueError(f"{name} must be one of {', '.join(words)}, not {value!r}")
        if field.type is int and (not isinstance(value, int) or isinstance(value, bool)):
            raise ValueError(f"{name} must be a whole number, not {value!r}")
        if (name in NUMBERS or name == "hidden") and not (isinstance(value, tuple) and value):
            raise ValueError(f"{name} must be a tuple of one or more numbers, not {value!r}")


def _check_values(config: Config) -> None:
    for name, field in FIELDS.items():
        value, rule = getattr(config, name), field.metadata["rule"]
        values = () if value is None else value if field.metadata["grid"] else (value,)
        for x in values if rule else ():
            if not rule[1](x):
                raise ValueError(f"{name} must be {rule[0]}, not {x:g}")
        if field.metadata["grid"] and len({f"{x:g}" for x in values}) < len(values):
            raise ValueError(f"{name} has a value twice, to six digits")
    if config.first_seed + config.seeds > 2**31:
        raise ValueError(f"seeds must be below 2^31: {config.first_seed} is too large a first one")
    if config.policy in ("exact", "linear") and any(q <= 0 for q in config.q):
        raise ValueError(f"q must be positive for the {config.policy} policy; `paper` takes any")
    if any(width < 1 for width in config.hidden):
        raise ValueError(f"hidden widths must be at least 1, not {config.hidden}")
    if config.learner == "parallel":
        return
    if config.target_period % config.train_period:
        raise ValueError(
            f"target_period ({config.target_period}) must be a multiple of train_period "
            f"({config.train_period})"
        )
    if config.buffer < config.batch:
        raise ValueError(f"buffer ({config.buffer}) must hold a batch ({config.batch})")
    if config.loop == "host" and config.buffer < 2:
        raise ValueError("buffer must be at least 2 on the host, not 1")
    if config.loop == "host" and config.env.startswith("MinAtar/"):
        raise ValueError(f"{config.env} is compiled: it has no host loop")
    if config.loop == "compiled" and (config.stack or config.env_timeout):
        there = "" if config.env.startswith("MinAtar/") else ": give --loop host as well"
        raise ValueError(f"stack and env_timeout are the host loop's{there}")


def whole_rollouts(config: Any) -> dict[str, int]:
    """Steps and target period, rounded up to whole rollouts of all environments."""
    frames = config.num_envs * config.rollout
    if frames % config.minibatches:
        raise ValueError(
            f"num_envs x rollout ({frames}) must be a multiple of minibatches "
            f"({config.minibatches})"
        )
    wanted = {"steps": config.steps, "target_period": config.target_period}
    return {name: -(-steps // frames) * frames for name, steps in wanted.items()}
