"""How a configuration is filled in and checked: from what was given to the values in effect."""

import dataclasses
import math
from typing import Any, Literal, get_args, get_origin

from tsallax.training.config import (
    FIELDS,
    FOLLOWING,
    FOREIGN,
    NUMBERS,
    OFF,
    ONLY,
    PRIORITIES,
    Config,
)
from tsallax.training.defaults import (
    check_kind,
    continuous_actor_defaults,
    discrete_actor_defaults,
    has_box,
    shown_by,
    value_agent_defaults,
)
from tsallax.training.limits import check_limits
from tsallax.training.presets import EXPONENTS, OPTIMISER_EPS, PRESETS

LARGEST_Q = 4.0  # of actor-critics: the power of a density overflows

NAMED = ("tuned", "paper", *PRESETS)
EVALUATIONS = 20  # of a run that does not say how often


def resolve(config: Config, shown: Any = None) -> Config:
    """Fill in everything that was not given, and refuse what cannot be run.

    Args:
        config: what was given.
        shown: shape and type of what an environment of the user's own shows, on the host.
    """
    try:
        return _resolved(config, shown)
    except ValueError as error:
        refused = error
    _name_spaces(config)
    raise refused


def _name_spaces(config: Config) -> None:
    """What an environment takes or shows is told before any other complaint, if it is the cause."""
    from tsallax import envs

    resolved = config.network is not None
    if config.env and not resolved and envs.kind_of(envs.canonical(config.env)) == "gymnasium":
        shown_by(config)
        check_kind(config.algo, config.env, has_box(config, "gymnasium"))


def _resolved(config: Config, shown: Any) -> Config:
    from tsallax import envs
    from tsallax.operators.table import ActorCritic, get_row

    if not config.env:
        raise ValueError("which environment? `tsallax list` names them")
    _check_kinds(config)
    row = get_row(config.algo)
    if isinstance(row, ActorCritic) and config.learner == "parallel":
        raise ValueError(f"{config.algo} learns from a replay: leave --learner parallel out")
    config = dataclasses.replace(config, env=envs.canonical(config.env))
    kind = envs.kind_of(config.env)
    if kind == "own" and config.loop is None:
        envs.check_own(config.env, None)
    if not isinstance(row, ActorCritic):
        agent, filling = "value agent", value_agent_defaults(config, kind, shown)
    elif has_box(config, kind):
        agent, filling = "continuous actor", continuous_actor_defaults(config)
    else:
        agent = "discrete actor"
        filling = discrete_actor_defaults(config, kind, row.actor, shown)
    filling |= {name: (value,) for name, value in row.defaults.items()}
    filling["loop"] = "compiled" if kind == "native" else "host"
    if kind != "atari":
        filling.pop("episodic_life", None)
    config = _fill(dataclasses.replace(config, preset=filling["preset"]), filling, agent)
    exponents = EXPONENTS if config.prioritised else {}
    config = _fill(config, {"optimiser_eps": OPTIMISER_EPS[config.optimiser], **exponents}, agent)
    _check_values(config)
    check_limits(config)
    if isinstance(row, ActorCritic):
        (_check_discrete if agent == "discrete actor" else _check_actor)(config)
    elif row.policy and config.q != filling["q"]:
        raise ValueError(f"{config.algo} has a policy of its own, whatever q: leave q out")
    return _normal_form(config)


def _fill(config: Config, filling: dict[str, Any], agent: str) -> Config:
    config = dataclasses.replace(config, learner=config.learner or filling["learner"])
    foreign = ONLY["replay" if config.learner == "parallel" else "parallel"]
    if given := [name for name in foreign if getattr(config, name) is not None]:
        other = "replay" if config.learner == "parallel" else "parallel"
        raise ValueError(
            f"{given[0]} is no option of the {config.learner} learner: give learner {other} as well"
        )
    others = FOREIGN[agent]
    if given := [name for name in others if getattr(config, name) is not None]:
        where = "" if agent == "value agent" else f" with {agent.removesuffix(' actor')} actions"
        raise ValueError(f"{given[0]} is no option of {config.algo}{where}")
    foreign += others
    names = [n for n in FIELDS if n in filling and n not in (*FOLLOWING, *foreign)]
    open_fields = {name: filling[name] for name in names if getattr(config, name) is None}
    return dataclasses.replace(config, **open_fields)


def _normal_form(config: Config) -> Config:
    """Equal runs have equal configurations: whole blocks of steps, and no number said twice."""
    own: dict[str, Any] = {n: None for n, off in OFF.items() if getattr(config, n) == off}
    if config.k is not None and all(config.k == (1.0 if q == 1 else 0.5,) for q in config.q):
        own["k"] = None
    if config.log_weight == config.alpha and len(config.alpha) == 1:
        own["log_weight"] = None
    wanted = config.stop_at is not None
    if config.eval_every is None or (wanted and not config.eval_every):
        wanted |= config.preset == "tuned"
        own["eval_every"] = -(-config.steps // EVALUATIONS) if wanted else 0
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
        if field.type is int and (not isinstance(value, int) or isinstance(value, bool)):
            raise ValueError(f"{name} must be a whole number, not {value!r}")
        if (name in NUMBERS or name == "hidden") and not (isinstance(value, tuple) and value):
            raise ValueError(f"{name} must be a tuple of one or more numbers, not {value!r}")


def _check_discrete(config: Config) -> None:
    _check_shannon(config)
    if any(math.isinf(q) for q in config.q):
        raise ValueError(f"q must be finite for {config.algo}: a greedy actor has no gradient")
    if config.policy != "exact":
        raise ValueError(f"{config.algo} has the exact policy, not {config.policy!r}")
    if any(not 0 < share < 1 for share in config.target_entropy):
        raise ValueError("target_entropy must be between 0 and 1, a share, for discrete actions")


def _check_shannon(config: Config) -> None:
    if config.algo == "sac" and config.q != (1.0,):
        raise ValueError("sac is q = 1: with another q it is tac")


def _check_actor(config: Config) -> None:
    if config.network != "mlp":
        raise ValueError(f"{config.algo} takes vectors: --network mlp, not {config.network}")
    if any(not 0 < q <= LARGEST_Q for q in config.q):
        raise ValueError(f"q must be positive and at most {LARGEST_Q:g} for {config.algo}")
    _check_shannon(config)
    if config.density == "q-gaussian" and any(q < 1 for q in config.q):
        raise ValueError("a q-gaussian needs q >= 1")
    if config.density == "q-gaussian" and config.algo == "munchausen-sac":
        raise ValueError(
            "munchausen-sac needs the density of replayed actions, which a bounded support leaves "
            "undefined: --density gaussian, or --algo tal-ac"
        )


def _check_values(config: Config) -> None:
    for name, field in FIELDS.items():
        value, rule = getattr(config, name), field.metadata["rule"]
        values = () if value is None else value if field.metadata["grid"] else (value,)
        for x in values if rule else ():
            if not rule[1](x):
                raise ValueError(f"{name} must be {rule[0]}, not {x:g}")
        if field.metadata["grid"] and len({f"{x:g}" for x in values}) < len(values):
            raise ValueError(f"{name} has a value twice, to six digits")
    if not config.init_from and (config.init_cell is not None or config.init_weights != "best"):
        raise ValueError("which run's weights? give init_from as well")
    if config.first_seed + config.seeds > 2**31:
        raise ValueError(f"seeds must be below 2^31: {config.first_seed} is too large a first one")
    if config.policy in ("exact", "linear") and any(q <= 0 for q in config.q):
        raise ValueError(f"q must be positive for the {config.policy} policy; `paper` takes any")
    if any(not isinstance(width, int) or width < 1 for width in config.hidden):
        raise ValueError(f"hidden widths must be whole and at least 1, not {config.hidden}")
    if config.loop == "host" and config.env.startswith("MinAtar/"):
        raise ValueError(f"{config.env} is compiled: it has no host loop")
    if config.loop == "compiled" and (config.stack or config.env_timeout):
        there = "" if config.env.startswith("MinAtar/") else ": give --loop host as well"
        raise ValueError(f"stack and env_timeout are the host loop's{there}")
    if config.dueling and config.network == "own":
        raise ValueError("dueling is for networks that have a name: your own can do it itself")
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
