"""The configuration of a run: every option, declared once. This module does not import jax."""

# ruff: noqa: RUF009 (an option is declared by a call, which makes a dataclass field)

import dataclasses
import itertools
import math
from dataclasses import dataclass
from typing import Any, Literal, no_type_check

from tsallax.training.options import (
    AT_LEAST_ONE,
    NOT_NEGATIVE,
    POSITIVE,
    SHARE,
    Choices,
    Range,
    number,
    option,
)

Numbers = tuple[float, ...]
Policy = Literal["exact", "paper", "paper-normalised", "linear", "literal", "printed"]
Network = Literal["mlp", "minatar-conv", "nature", "own"]
CLOSED = frozenset({1.0, 2.0, math.inf})  # the q whose policy has a closed form, by any method


@no_type_check  # fields have the type of their resolved value; until then they may be None
@dataclass(frozen=True)
class Config:
    """The options of a run. Several values of a number make a grid.

    None is "not given": `resolve` fills it in from the algorithm, the silent choices or the preset.
    Afterwards every field has the value in effect, except those that are derived in each cell (`k`,
    `log_weight`), options that the environment does not use, and the choices of a tuned run.
    """

    # fmt: off
    env: str = option("common", "Environment: one that `tsallax list` names, or Gymnasium's.", "")
    algo: str = option("common", "Algorithm: see `tsallax list`.")
    seeds: int = option("common", "Seeds, trained side by side.", 1, AT_LEAST_ONE)
    first_seed: int = option("common", "The first seed; the others follow it.", 0, NOT_NEGATIVE)
    steps: int = option("common", "Environment steps of each seed.", rule=AT_LEAST_ONE,
                        aliases=("--total-timesteps",))
    preset: str = option(
        "common", "Source of the options that are not given: settings found by experiment (tuned), "
        "the paper's table for the environment (paper), a named one of its tables 1 to 3 (gym, "
        "minatar, atari), or a TOML file of options.")
    learner: Literal["replay", "parallel"] = option(
        "common", "Algorithm 1 with a replay, or many environments side by side without one.")
    choices: Literal["paper", "sb3", "zoo"] = option(
        "common", "What the paper leaves open: its loss as it is printed (paper), the settings of "
        "its base libraries (sb3), or those of rl-zoo (zoo).")
    tag: str = option("common", "Free text, kept with the run.", "")

    policy: Policy = option("algorithm", "How the Tsallis policy is computed: exactly for every "
                            "q > 0, or by one of the paper's approximations.", "exact")
    q: Numbers = number("Entropic index: 1 softmax, 2 sparsemax, inf greedy.",
                        ("a number", lambda x: not math.isnan(x)))
    alpha: Numbers = number("Weight of the entropy.", POSITIVE, tune=Range(1e-3, 0.3, log=True))
    beta: Numbers = number("Weight of the advantage or of the log-policy.", NOT_NEGATIVE,
                           tune=Range(0.0, 0.99))
    gamma: Numbers = number("Discount.", SHARE)
    k: Numbers | None = number(
        "Factor of the entropy; 1/2, but 1 at q = 1, if not given.", POSITIVE
    )
    entropy: Numbers = number("1 adds alpha H(pi') to the bootstrap.", NOT_NEGATIVE)
    log_weight: Numbers | None = number(
        "Weight of the log-policy; alpha if not given, 1 is the bare ln pi.",
        ("finite", math.isfinite))
    clip: Numbers = number("Lower bound of the weighted log-policy.",
                           ("0 or less", lambda x: x <= 0))
    delta: Numbers = number("Added to pi under a logarithm.", NOT_NEGATIVE)
    clip_ratio: Numbers | None = number("Clipped AL: an action gets a bonus if its value above the "
                                        "floor is at least this share of the best action's (c).",
                                        ("at most 1", lambda x: x <= 1))
    value_floor: Numbers | None = number("Clipped AL: a lower bound of the action values.",
                                         ("below infinity", lambda x: x < math.inf))
    learning_rate: Numbers = number("Step size of the optimiser.", POSITIVE, aliases=("--lr",),
                                    tune=Range(1e-5, 1e-2, log=True))
    max_grad_norm: Numbers = number("Maximum norm of the gradient.",
                                    ("positive", lambda x: x > 0))
    epsilon: Numbers = number("Probability of a uniformly random action at the start.", SHARE)
    epsilon_end: Numbers = number("The same probability after the decay.", SHARE,
                                  tune=Range(0.01, 0.1))
    lambda_: Numbers = number("Parallel: lambda of the returns, 0 for one step.", SHARE,
                              tune=Range(0.0, 1.0))
    reward_scale: Numbers = number("Parallel: factor of the rewards for the learner.",
                                   POSITIVE)
    learning_rate_end: Numbers = number("Parallel: step size at the end, reached linearly.",
                                        NOT_NEGATIVE, aliases=("--lr-end",))
    epsilon_fraction: float = option("algorithm", "Length of epsilon's decay, as a share of a run.",
                                     rule=("in (0, 1]", lambda x: 0 < x <= 1),
                                     tune=Range(0.05, 0.6))
    schedule_steps: int | None = option(
        "algorithm", "Length of the schedules of epsilon, the step size and importance weights, in "
        "environment steps; they keep their end values after that. All steps if not given.",
        rule=AT_LEAST_ONE)
    optimiser: Literal["adam", "radam", "rmsprop"] = option("algorithm", "Optimiser.")
    optimiser_eps: float = option(
        "algorithm", "Epsilon of the optimiser, added to the root of the second moment.",
        rule=NOT_NEGATIVE)
    loss: Literal["squared", "huber"] = option("algorithm", "Loss of a scalar head.")
    double: bool = option(
        "algorithm", "Compute the policy at s' from the online network and its value from the "
        "target network.")
    n_step: int = option("algorithm", "Transitions per target (n-step returns).", rule=AT_LEAST_ONE)
    prioritised: bool = option(
        "algorithm", "Sample transitions in proportion to their last errors, not uniformly.",
        aliases=("--prioritized",))
    priority_exponent: Numbers = number(
        "Prioritised: exponent of the errors; 0 is uniform, 0.6 if not given.", SHARE,
        tune=Range(0.2, 1.0))
    importance_exponent: Numbers = number(
        "Prioritised: exponent of the importance weights at the start, linear to 1 at the end; 0.4 "
        "if not given.", SHARE, tune=Range(0.0, 1.0))
    acting: Literal["pi", "argmax"] = option(
        "algorithm", "Epsilon-greedy over pi, or over argmax Q."
    )
    batch: int = option("algorithm", "Transitions per update.", rule=AT_LEAST_ONE,
                        tune=Choices((32, 64, 128)))
    buffer: int = option("algorithm", "Transitions kept per seed.", rule=AT_LEAST_ONE)
    train_period: int = option("algorithm", "Environment steps between updates (C).",
                               rule=AT_LEAST_ONE)
    updates: int = option("algorithm", "Updates per train period.", rule=AT_LEAST_ONE)
    target_period: int = option("algorithm", "Environment steps between copies of the target "
                                "network (I), and between rows of the metrics. The paper has 1000 "
                                "for CartPole.", rule=AT_LEAST_ONE)
    warmup: int = option("algorithm", "Environment steps before the first update (at least a "
                         "batch).", rule=NOT_NEGATIVE)
    random_warmup: bool = option("algorithm", "Uniformly random actions until the first update.")
    clip_rewards: bool = option("algorithm", "Clip rewards to [-1, 1] for the learner; returns are "
                                "reported as they are.")
    sal_draw: Literal["update", "sample"] = option(
        "algorithm", "When SAL draws its weight b: once per update, or for each transition of the "
        "batch.")

    num_envs: int = option("algorithm", "Parallel: environments per seed.", rule=AT_LEAST_ONE,
                           tune=Choices((8, 16, 32)))
    rollout: int = option("algorithm", "Parallel: steps of each environment per rollout.",
                          rule=AT_LEAST_ONE, tune=Choices((16, 32, 64)))
    epochs: int = option("algorithm", "Parallel: passes over a rollout.", rule=AT_LEAST_ONE)
    minibatches: int = option("algorithm", "Parallel: updates per pass.", rule=AT_LEAST_ONE)
    frozen_bonus: bool = option("algorithm", "Parallel: take the bonus from a frozen copy.")

    clip_above: Numbers = number("Actor-critic: upper bound of the bonus before beta.",
                                 ("0 or more", lambda x: x >= 0))
    tau: Numbers = number(
        "Fraction by which the target network moves towards the network at each update, instead of "
        "a copy every target period; for actor-critics, the target critics.", SHARE,
        aliases=("--polyak",), tune=Range(1e-3, 0.1, log=True))
    target_entropy: Numbers = number(
        "Actor-critic: target of an automatic alpha: the Shannon entropy per dimension of a "
        "Gaussian of the wanted width or, for discrete actions, a share of the maximum.",
        ("finite", math.isfinite))
    automatic_alpha: bool = option("algorithm", "Actor-critic: adjust alpha to the target entropy. "
                                   "True for continuous actions if alpha is not given.")
    density: Literal["gaussian", "q-gaussian"] = option(
        "algorithm", "Actor-critic: density of the policy before the tanh; a q-Gaussian has a "
        "bounded support for q > 1.")
    baseline_actions: int = option("algorithm", "Actor-critic: number of sampled actions in the "
                                   "baseline of the advantage.", rule=AT_LEAST_ONE)
    actor: Literal["fenchel-young", "objective", "exact"] = option(
        "algorithm", "Actor-critic, discrete actions: the loss of the policy network; `exact` has "
        "no such network, but the exact policy of the critics.")

    network: Network = option("network", "Network; `own` is one that is given in Python.")
    hidden: tuple[int, ...] = option("network", "Widths of the fully connected layers.",
                                     tune=Choices(((64, 64), (128, 128), (256, 256))))
    head: Literal["scalar", "quantile"] = option(
        "network", "Action values, or quantiles of returns."
    )
    quantiles: int = option("network", "Quantiles of a quantile head.", 200, AT_LEAST_ONE)
    layer_norm: bool = option("network", "Layer normalisation before each ReLU.")
    dueling: bool = option("network", "A duelling head: V + A - mean A.",
                           aliases=("--duelling",))

    loop: Literal["compiled", "host"] = option(
        "environment", "Where the environment runs: compiled with the learner, if possible the "
        "default, or on the host.")
    stack: int = option("environment", "Frames per observation, on the host; 0 for no stacking.",
                        rule=NOT_NEGATIVE)
    env_timeout: float = option("environment", "Seconds a host environment may take for a step; 0 "
                                "for no limit.", 0.0, NOT_NEGATIVE)
    one_hot: bool | None = option("environment", "Gymnasium: discrete observations as one-hot "
                                  "vectors (False).")
    sticky: float | None = option("environment", "Probability of repeating the last action "
                                  "(MinAtar 0.1, Atari 0).", rule=SHARE)
    ramping: bool | None = option("environment", "MinAtar: growing difficulty (True).")
    minimal_actions: bool | None = option(
        "environment", "MinAtar: only the actions that do something (False).")
    time_limit: int | None = option("environment", "Maximum number of steps per episode; the "
                                    "environment's own if not given.", rule=AT_LEAST_ONE)
    noop_max: int | None = option("environment", "Atari: most no-op steps at the start (30).",
                                  rule=NOT_NEGATIVE)
    fire_reset: bool | None = option("environment", "Atari: press FIRE at the start (True).")
    episodic_life: bool | None = option(
        "environment", "Atari: a lost life is a termination for the learner (False).")

    eval_every: int = option("saving", "Environment steps between evaluations; 0 for none.",
                             rule=NOT_NEGATIVE)
    eval_episodes: int = option("saving", "Episodes of each evaluation.", rule=AT_LEAST_ONE)
    eval_acting: Literal["pi", "argmax"] = option(
        "saving", "Evaluations act by samples of pi or by argmax Q, without epsilon.", "pi")
    stop_at: float | None = option(
        "saving", "End when each seed has reached this return in an evaluation; evaluates every "
        "twentieth of the steps if eval_every is not given.", rule=("finite", math.isfinite))
    init_from: str = option("saving", "Folder of another run, or agent:NAME, from whose weights "
                            "every seed starts; the optimiser starts afresh.", "")
    init_weights: Literal["best", "last"] = option(
        "saving", "Of init_from: those of the best evaluation, if it has any, or the last.", "best")
    init_cell: int | None = option("saving", "Of init_from: which of the cells in its run.json; "
                                   "the best one if not given.", rule=NOT_NEGATIVE)
    save_seconds: float = option("saving", "Seconds between checkpoints; 0: only at a stop.",
                                 60.0, NOT_NEGATIVE)
    save_steps: int = option("saving", "Minimum number of steps between checkpoints.", 0,
                             NOT_NEGATIVE)
    keep_state: float = option(
        "saving", "Megabytes that the state of a finished run may take to be kept, so that "
        "--resume RUN --steps N can extend it.", 100.0, NOT_NEGATIVE)
    # fmt: on

    @property
    def env_options(self) -> dict[str, Any]:
        names = ("one_hot", "sticky", "ramping", "minimal_actions", "time_limit")
        names += ("noop_max", "fire_reset", "episodic_life")
        return {n: getattr(self, n) for n in names if getattr(self, n) is not None}


FIELDS = {field.name: field for field in dataclasses.fields(Config)}
NUMBERS = tuple(name for name, field in FIELDS.items() if field.metadata["grid"])
DRAWN = ("clip_above", "density", "baseline_actions")  # options for continuous actions only
ACTOR = (*DRAWN, "target_entropy", "automatic_alpha", "actor")
# The meaning of None; no built-in preset sets these, so that older folders stay unchanged.
OFF = {"double": False, "n_step": 1, "prioritised": False, "dueling": False}
PRIORITIES = ("priority_exponent", "importance_exponent")
YOUNGER = (  # options that are newer than schema 3 of the run folder
    "stop_at",
    "schedule_steps",
    "keep_state",
    "clip_ratio",
    "value_floor",
    "init_from",
    "init_weights",
    "init_cell",
    "tau",
    "one_hot",
    *ACTOR,
    *OFF,
    *PRIORITIES,
)
FOLLOWING = ("k", "log_weight")  # derived in each cell from its other numbers
ONLY = {  # options of only one learner; for the other they stay None
    "replay": ("batch", "buffer", "train_period", "updates", "warmup", "random_warmup", "sal_draw",
               "double", "n_step", "prioritised", *PRIORITIES, "tau"),
    "parallel": ("num_envs", "rollout", "epochs", "minibatches", "frozen_bonus", "lambda_",
                 "reward_scale", "learning_rate_end"),
}  # fmt: skip
VALUE = ("delta", "log_weight", "max_grad_norm", "loss", "acting", "sal_draw", "head",
         *OFF, *PRIORITIES)  # fmt: skip
FOREIGN = {  # for each kind of agent, the options that only other kinds have
    "value agent": ACTOR,
    "discrete actor": (*VALUE, *DRAWN),
    "continuous actor": (*VALUE, "actor"),
}


def agent_kind(config: Config) -> str:
    """Returns the kind of agent of a resolved configuration."""
    if config.automatic_alpha is None:
        return "value agent"
    return "discrete actor" if config.actor else "continuous actor"


def foreign_options(config: Config, agent: str) -> tuple[str, ...]:
    """The options of the other learner and of other kinds of agents."""
    return ONLY["replay" if config.learner == "parallel" else "parallel"] + FOREIGN[agent]


def grid(config: Config) -> list[dict[str, float]]:
    """The combinations of the numbers that have several values, in the order of the fields."""
    given = {name: getattr(config, name) for name in NUMBERS if getattr(config, name)}
    return [dict(zip(given, values, strict=True)) for values in itertools.product(*given.values())]


def in_effect(config: Config, name: str) -> Any:
    """The value of a field of a resolved configuration, also if its None means "off"."""
    value = getattr(config, name)
    return OFF.get(name) if value is None else value


def varied(config: Config) -> list[str]:
    """The numbers that have several values."""
    return [name for name in NUMBERS if len(getattr(config, name) or ()) > 1]


def to_json(config: Config) -> dict[str, Any]:
    """The fields for `run.json`, without those of `YOUNGER` that have their default value."""
    fields = dataclasses.asdict(config)
    return {n: x for n, x in fields.items() if n not in YOUNGER or x != FIELDS[n].default}
