"""Resolves a configuration: from the options given to the values in effect."""

import dataclasses
from typing import Any

from tsallax.training import actor_settings
from tsallax.training.checks import check_foreign, check_kinds, check_limits, check_values
from tsallax.training.config import FIELDS, FOLLOWING, OFF, Config, foreign_options
from tsallax.training.presets import EXPONENTS, OPTIMISER_EPS, paper_defaults

EVALUATIONS = 20  # number of evaluations per run, if `eval_every` is not given


def resolve(config: Config, shown: Any = None) -> Config:
    """Fill in everything that was not given, and refuse configurations that cannot be run.

    Args:
        config: the options given.
        shown: shape and dtype of the observations of a user's own host environment.
    """
    try:
        return _resolved(config, shown)
    except ValueError as error:
        refused = error
    _check_spaces(config)
    raise refused


def _check_spaces(config: Config) -> None:
    """Refuse unsupported spaces of an environment first, as they may cause the other errors."""
    from tsallax import envs

    resolved = config.network is not None
    if config.env and not resolved and envs.kind_of(envs.canonical(config.env)) == "gymnasium":
        from tsallax.envs.host import spaces_of

        _, box = spaces_of(config.env, bool(config.one_hot))
        if config.algo is not None:
            check_kind(config.algo, config.env, box is not None)


def check_kind(algo: str, env_id: str, box: bool) -> None:
    """Refuse an algorithm for discrete actions in an environment with continuous ones."""
    from tsallax.operators.actor_critics import ACTOR_CRITICS

    if box and algo not in ACTOR_CRITICS:
        known = ", ".join(ACTOR_CRITICS)
        raise ValueError(f"{env_id} has continuous actions, for which --algo is one of {known}")


def _resolved(config: Config, shown: Any) -> Config:
    from tsallax import envs
    from tsallax.operators.table import ActorCritic, get_row

    if not config.env:
        raise ValueError("no environment was given; `tsallax list` shows the names")
    check_kinds(config)
    config = dataclasses.replace(config, env=envs.canonical(config.env))
    kind = envs.kind_of(config.env)
    if kind == "own" and config.loop is None:
        envs.check_own(config.env, None)
    if config.algo is None:
        box = actor_settings.has_box(config, kind)
        config = dataclasses.replace(config, algo="tal-ac" if box else "tal")
    row = get_row(config.algo)
    if isinstance(row, ActorCritic) and config.learner == "parallel":
        raise ValueError(f"{config.algo} learns from a replay: leave --learner parallel out")
    if not isinstance(row, ActorCritic):
        agent, filling = "value agent", _value_agent_defaults(config, kind, shown)
    elif actor_settings.has_box(config, kind):
        agent, filling = "continuous actor", actor_settings.continuous_defaults(config)
    else:
        replay = dataclasses.replace(config, learner="replay")
        value_agent = _value_agent_defaults(replay, kind, shown)
        agent, filling = "discrete actor", actor_settings.discrete_defaults(value_agent, row)
    filling |= {name: (value,) for name, value in row.defaults.items()}
    filling["loop"] = "compiled" if kind == "native" else "host"
    if kind != "atari":
        filling.pop("episodic_life", None)
    learner = config.learner or filling["learner"]
    config = dataclasses.replace(config, preset=filling["preset"], learner=learner)
    check_foreign(config, agent)
    config = _fill(config, filling, agent)
    exponents = EXPONENTS if config.prioritised else {}
    config = _fill(config, {"optimiser_eps": OPTIMISER_EPS[config.optimiser], **exponents}, agent)
    check_values(config)
    check_limits(config)
    if isinstance(row, ActorCritic):
        actor_settings.check_actor_critic(config, agent)
    elif row.policy and config.q != filling["q"]:
        raise ValueError(f"{config.algo} has its own policy, without q: leave q out")
    config = _normal_form(config)
    check_limits(config)  # again, as steps are rounded up
    return config


def _value_agent_defaults(config: Config, kind: str, shown: Any) -> dict[str, Any]:
    """The defaults from the preset and the choices, including the preset in effect."""
    preset = config.preset or ("paper" if config.choices else "tuned")
    games = config.env.startswith("MinAtar/")
    domain = "atari" if kind == "atari" else "minatar" if games else "gym"
    if preset == "tuned":
        if config.choices:
            raise ValueError(f"the choices {config.choices!r} are for the preset paper, not tuned")
        from tsallax.training.tuned import tuned_defaults

        return tuned_defaults(config, domain, kind, shown)
    return paper_defaults(config, domain if preset == "paper" else preset)


def _fill(config: Config, filling: dict[str, Any], agent: str) -> Config:
    """Fill options not given from `filling`, except those the learner or agent does not have."""
    useless = {*FOLLOWING, *foreign_options(config, agent)}
    names = [name for name in FIELDS if name in filling and name not in useless]
    open_fields = {name: filling[name] for name in names if getattr(config, name) is None}
    return dataclasses.replace(config, **open_fields)


def _normal_form(config: Config) -> Config:
    """The normal form, equal for equal runs: whole blocks of steps, no redundant numbers."""
    own: dict[str, Any] = {n: None for n, off in OFF.items() if getattr(config, n) == off}
    if config.k is not None and all(config.k == (1.0 if q == 1 else 0.5,) for q in config.q):
        own["k"] = None
    if config.log_weight == config.alpha and len(config.alpha) == 1:
        own["log_weight"] = None
    wanted = config.stop_at is not None
    if config.eval_every is None or (wanted and not config.eval_every):
        wanted |= config.preset == "tuned"
        own["eval_every"] = -(-config.steps // EVALUATIONS) if wanted else 0
    own |= _whole_rollouts(config) if config.learner == "parallel" else _whole_blocks(config)
    if config.schedule_steps == own["steps"]:
        own["schedule_steps"] = None
    return dataclasses.replace(config, **own)


def _whole_blocks(config: Config) -> dict[str, int]:
    """Warm-up, of at least one batch, and steps, rounded up to whole train periods."""
    period = config.train_period
    whole = {"warmup": max(config.warmup, config.batch), "steps": config.steps}
    whole = {name: -(-steps // period) * period for name, steps in whole.items()}
    if whole["steps"] <= whole["warmup"]:
        raise ValueError(
            f"{config.steps} steps make no update: the first one comes after {whole['warmup']}, "
            "a batch or the warm-up"
        )
    return whole


def _whole_rollouts(config: Config) -> dict[str, int]:
    """Steps and target period, rounded up to whole rollouts of all environments."""
    frames = config.num_envs * config.rollout
    if frames % config.minibatches:
        raise ValueError(
            f"num_envs x rollout ({frames}) must be a multiple of minibatches "
            f"({config.minibatches})"
        )
    wanted = {"steps": config.steps, "target_period": config.target_period}
    return {name: -(-steps // frames) * frames for name, steps in wanted.items()}
