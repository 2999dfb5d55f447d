"""A run's whole configuration: presets, silent choices, validation. No jax in here."""

import dataclasses
import itertools
import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args, get_origin

import tyro

from tsallax.training.presets import COMMON, OPTIMISER_EPS, PRESETS, silent_choices

PresetName = Literal["auto", "gym", "minatar", "atari"]
ChoicesName = Literal["paper", "sb3", "zoo"]
Numbers = tuple[float, ...]

# The q for which a policy has a closed form, whatever its method.
CLOSED = frozenset({1.0, 2.0, math.inf})
# Number fields: what is allowed, in words and as a test.
RANGES: dict[str, tuple[str, Any]] = {
    "q": ("a number", lambda x: not math.isnan(x)),
    "alpha": ("positive", lambda x: 0 < x < math.inf),
    "beta": ("finite and not negative", lambda x: 0 <= x < math.inf),
    "gamma": ("between 0 and 1", lambda x: 0 <= x <= 1),
    "k": ("positive", lambda x: 0 < x < math.inf),
    "entropy": ("0 or more", lambda x: 0 <= x < math.inf),
    "log_weight": ("finite", math.isfinite),
    "clip": ("not positive", lambda x: x <= 0),
    "delta": ("0 or more", lambda x: 0 <= x < math.inf),
    "learning_rate": ("positive", lambda x: 0 < x < math.inf),
    "max_grad_norm": ("positive", lambda x: x > 0),
    "epsilon": ("between 0 and 1", lambda x: 0 <= x <= 1),
    "epsilon_end": ("between 0 and 1", lambda x: 0 <= x <= 1),
}


@dataclass(frozen=True)
class Config:
    """A run.

    Several values of a number make a grid. What is left open (`auto`, 0, none) comes from the
    algorithm, the preset or the choices, in this order.
    """

    # one that `tsallax list` names, or another of Gymnasium's with discrete actions
    env: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ENV")] = ""
    algo: str = "tal"  # see `tsallax list`
    seeds: int = 1  # how many, trained side by side
    first_seed: int = 0  # the others follow it
    steps: int = 100_000  # environment steps of each seed
    preset: PresetName = "auto"  # Table 1, 2 or 3 of the paper; auto goes by the environment
    # what the paper does not say: as printed, as Stable-Baselines3 did, or as rl-zoo's settings
    choices: ChoicesName = "paper"
    # the Tsallis policy: exact for every q > 0, or one of the paper's approximations
    policy: Literal["exact", "paper", "paper-normalised", "linear", "literal", "printed"] = "exact"
    q: Numbers = ()  # entropic index: 2, or the algorithm's own
    alpha: Numbers = ()  # weight of the entropy
    beta: Numbers = ()  # weight of the advantage or the log-policy
    gamma: Numbers = (0.99,)  # discount
    k: Numbers = ()  # factor of the entropy: 1/2, but 1 at q = 1
    entropy: Numbers = ()  # 1 adds alpha H(pi') to the bootstrap (0)
    log_weight: Numbers = ()  # weight of the log-policy: alpha; 1 is the bare ln pi
    clip: Numbers = ()  # lower bound of the weighted log-policy: none, but -1 for mdqn
    delta: Numbers = ()  # added to pi under a logarithm: 1e-8
    learning_rate: Numbers = ()  # of the optimiser, by the preset
    max_grad_norm: Numbers = ()  # the gradient's norm is clipped to it, by the choices
    epsilon: Numbers = ()  # share of uniform actions at the start
    epsilon_end: Numbers = ()  # and after the decay
    epsilon_fraction: float = 0.1  # length of the decay, as a share of the steps
    head: Literal["auto", "scalar", "quantile"] = "auto"  # action values, or quantiles of returns
    quantiles: int = 200  # of a quantile head
    network: Literal["auto", "mlp", "minatar-conv", "nature", "own"] = (
        "auto"  # own: from Python only
    )
    hidden: tuple[int, ...] = ()  # widths of the fully connected layers
    optimiser: Literal["auto", "adam", "rmsprop"] = "auto"  # by the preset
    optimiser_eps: float | None = None  # added to the root of the second moment
    loss: Literal["auto", "squared", "huber"] = "auto"  # by the choices
    acting: Literal["auto", "pi", "argmax"] = "auto"  # epsilon-greedy over pi, or over argmax Q
    batch: int = 0  # transitions an update, by the preset
    buffer: int = 0  # transitions kept, of each seed
    train_period: int = 0  # C: environment steps an update
    target_period: int = 0  # I: environment steps a copy of the target network
    updates: int = 0  # gradient updates per train period
    warmup: int = 0  # steps before the first update, at least one batch
    random_warmup: bool | None = None  # uniformly random actions until the first update
    stack: int = 0  # frames that make an observation: 4 for Atari, elsewhere none if left open
    clip_rewards: bool | None = None  # to [-1, 1], for the learner; returns are reported raw
    loop: Literal["auto", "compiled", "host"] = "auto"  # compiled where the environment allows it
    env_timeout: float = 0.0  # seconds a host environment may take for a step, 0 for no limit
    sal_draw: Literal["update", "sample"] = "update"  # how often SAL draws its beta
    eval_every: int = 0  # steps between evaluations, 0 for none
    eval_episodes: int = 10  # in each of them
    eval_acting: Literal["pi", "argmax"] = "pi"  # in evaluations, without epsilon
    sticky: float | None = None  # probability of repeating the last action; MinAtar 0.1, Atari 0
    ramping: bool | None = None  # MinAtar: growing difficulty (on)
    minimal_actions: bool | None = None  # MinAtar: only the actions that do something (off)
    time_limit: int | None = None  # of an episode; the environment's own if left open
    noop_max: int | None = None  # Atari: idle steps at the start, at most (30)
    fire_reset: bool | None = None  # Atari: press FIRE at the start (on)
    episodic_life: bool | None = None  # Atari: a lost life terminates for the learner (off)
    save_seconds: float = 60.0  # between checkpoints, 0 for none but at a stop
    save_steps: int = 0  # and between them in environment steps, 0 for any number
    tag: str = ""  # free text, kept with the run

    @property
    def env_options(self) -> dict[str, Any]:
        names = ("sticky", "ramping", "minimal_actions", "time_limit")
        names += ("noop_max", "fire_reset", "episodic_life")
        return {n: getattr(self, n) for n in names if getattr(self, n) is not None}


def resolve(config: Config) -> Config:
    """Everything that was left open filled in: user, then algorithm, then preset and choices."""
    from tsallax import envs
    from tsallax.operators import get_algorithm

    if not config.env:
        raise ValueError("which environment? `tsallax list` names them")
    _check_choices(config)
    row = get_algorithm(config.algo)
    config = dataclasses.replace(config, env=envs.canonical(config.env))
    kind = envs.kind_of(config.env)
    preset = config.preset
    if preset == "auto":
        small = config.env.startswith("MinAtar/")
        preset = "atari" if kind == "atari" else "minatar" if small else "gym"
    head = config.head if config.head != "auto" else PRESETS[preset].get("head", "scalar")
    filling = {**COMMON, **PRESETS[preset], "preset": preset}
    filling |= silent_choices(config.choices, preset, head)
    if kind != "atari":
        filling.pop("episodic_life", None)
    filling["loop"] = "compiled" if kind == "native" else "host"
    if preset == "gym" and config.env.startswith("CartPole"):
        filling["target_period"] = 1000
    filling |= {name: (value,) for name, value in row.defaults.items()}
    open_fields = {
        f.name: filling[f.name]
        for f in dataclasses.fields(config)
        if f.name in filling and _is_open(getattr(config, f.name))
    }
    config = dataclasses.replace(config, **open_fields)
    if config.optimiser_eps is None:
        config = dataclasses.replace(config, optimiser_eps=OPTIMISER_EPS[config.optimiser])
    _check_kinds(config)
    _validate(config)
    if row.policy and config.q != ((row.defaults["q"],) if "q" in row.defaults else config.q[:1]):
        raise ValueError(f"{config.algo} has a policy of its own, whatever q: leave q out")
    # Whole blocks of C steps, and at least one batch before the first update.
    period = config.train_period
    whole = {"warmup": max(config.warmup, config.batch), "steps": config.steps}
    whole = {n: -(-x // period) * period for n, x in whole.items()}
    if whole["steps"] <= whole["warmup"]:
        raise ValueError(
            f"{config.steps} steps make no update: the first one comes after {whole['warmup']}, "
            "a batch or the warm-up"
        )
    return dataclasses.replace(config, **whole)


def _is_open(value: Any) -> bool:
    return value is not False and value in (0, (), "auto", None)


def _check_choices(config: Config) -> None:
    """A word that is none of a field's own: the command line never gets here, Python may."""
    for field in dataclasses.fields(config):
        words = get_args(field.type) if get_origin(field.type) is Literal else ()
        value = getattr(config, field.name)
        if words and value not in words:
            raise ValueError(f"{field.name} must be one of {', '.join(words)}, not {value!r}")


def _check_kinds(config: Config) -> None:
    """Whole numbers and tuples, where the command line has them by itself."""
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if field.type is int and (not isinstance(value, int) or isinstance(value, bool)):
            raise ValueError(f"{field.name} must be a whole number, not {value!r}")
    if not isinstance(config.hidden, tuple):
        raise ValueError(f"hidden must be a tuple of widths, not {config.hidden!r}")


def _validate(config: Config) -> None:
    positive = ("seeds", "steps", "quantiles", "batch", "buffer", "train_period", "target_period")
    for name in (*positive, "updates", "eval_episodes"):
        if getattr(config, name) < 1:
            raise ValueError(f"{name} must be at least 1, not {getattr(config, name)}")
    for name in ("first_seed", "eval_every", "warmup", "stack", "save_steps"):
        if getattr(config, name) < 0:
            raise ValueError(f"{name} must not be negative, not {getattr(config, name)}")
    if config.first_seed + config.seeds > 2**31:
        raise ValueError(f"seeds must be below 2^31: {config.first_seed} is too large a first one")
    for name, (words, allowed) in RANGES.items():
        for value in getattr(config, name):
            if not allowed(value):
                raise ValueError(f"{name} must be {words}, not {value:g}")
        if len({f"{value:g}" for value in getattr(config, name)}) < len(getattr(config, name)):
            raise ValueError(f"{name} has a value twice, to six digits")
    if config.policy in ("exact", "linear") and any(q <= 0 for q in config.q):
        raise ValueError(f"q must be positive for the {config.policy} policy; `paper` takes any")
    if not 0 < config.epsilon_fraction <= 1:
        raise ValueError(f"epsilon_fraction must be in (0, 1], not {config.epsilon_fraction:g}")
    if any(width < 1 for width in config.hidden):
        raise ValueError(f"hidden widths must be at least 1, not {config.hidden}")
    if config.target_period % config.train_period:
        raise ValueError(
            f"target_period ({config.target_period}) must be a multiple of train_period "
            f"({config.train_period})"
        )
    if config.buffer < config.batch:
        raise ValueError(f"buffer ({config.buffer}) must hold a batch ({config.batch})")
    if config.loop == "host" and config.buffer < 2:
        raise ValueError("buffer must be at least 2 on the host, not 1")
    if config.optimiser_eps is None or not 0 <= config.optimiser_eps < math.inf:
        raise ValueError(f"optimiser_eps must be 0 or more, not {config.optimiser_eps}")
    if config.sticky is not None and not 0 <= config.sticky <= 1:
        raise ValueError(f"sticky must be between 0 and 1, not {config.sticky:g}")
    for name in ("env_timeout", "save_seconds"):
        if not 0 <= getattr(config, name) < math.inf:
            raise ValueError(f"{name} must be 0 or more, not {getattr(config, name):g}")
    if config.noop_max is not None and config.noop_max < 0:
        raise ValueError(f"noop_max must not be negative, not {config.noop_max}")
    if config.loop == "host" and config.env.startswith("MinAtar/"):
        raise ValueError(f"{config.env} is compiled: it has no host loop")
    if config.loop == "compiled" and (config.stack or config.env_timeout):
        there = "" if config.env.startswith("MinAtar/") else ": give --loop host as well"
        raise ValueError(f"stack and env_timeout are the host loop's{there}")
    if config.time_limit is not None and config.time_limit < 1:
        raise ValueError(f"time_limit must be at least 1, not {config.time_limit}")


def from_json(fields: Any) -> Config:
    """A resolved configuration as `run.json` has it; anything else is refused."""
    known = {field.name: field for field in dataclasses.fields(Config)}
    try:
        if set(fields) != set(known):
            odd = sorted(set(fields) ^ set(known))
            raise ValueError(f"the configuration has other fields: {', '.join(map(str, odd))[:80]}")
        values = {name: _from_json(name, value, known[name].type) for name, value in fields.items()}
        config = Config(**values)
        if resolve(config) != config:
            raise ValueError("the configuration was not resolved")
    except (TypeError, AttributeError, OverflowError):
        raise ValueError("the configuration is damaged") from None
    return config


def _from_json(name: str, value: Any, kind: Any) -> Any:
    if name in RANGES:  # infinity is written as a word
        return tuple(float(x) for x in value)
    if name == "hidden":
        value = tuple(value)
        kind, items = int, value
    else:
        items = (value,)
    kinds = {t for t in (kind, *get_args(kind)) if isinstance(t, type)} or {str}
    allowed = kinds | ({int} if float in kinds else set())
    if any(type(item) not in allowed for item in items):
        raise ValueError(f"the configuration is damaged: {name}")
    return float(value) if kind is float else value


def grid(config: Config) -> list[dict[str, float]]:
    """The combinations of the numbers that have several values, in the order of the fields."""
    given = {name: getattr(config, name) for name in RANGES if getattr(config, name)}
    return [dict(zip(given, values, strict=True)) for values in itertools.product(*given.values())]


def varied(config: Config) -> list[str]:
    """The numbers that have several values."""
    return [name for name in RANGES if len(getattr(config, name)) > 1]
