"""The settings of actor-critics: tables of defaults, and checks of the options."""

import math
from typing import TYPE_CHECKING, Any

from tsallax.training.config import Config
from tsallax.training.presets import COMMON

if TYPE_CHECKING:
    from tsallax.operators.actor_critics import ActorCritic

LARGEST_Q = 4.0  # above it, powers of a density overflow

# For continuous actions: the defaults of Stable-Baselines3's SAC, and per environment rl-zoo's,
# except for its networks and its linear decay of the step size. Random actions fill the replay
# before the first update.
ACTOR_CRITIC: dict[str, Any] = {
    "network": "mlp",
    "hidden": (256, 256),
    "optimiser": "adam",
    "learning_rate": (3e-4,),
    "batch": 256,
    "buffer": 1_000_000,
    "train_period": 1,
    "target_period": 1000,  # nothing is copied: metrics and checkpoints, as ever
    "warmup": 256,
    "random_warmup": True,
    "epsilon": (0.0,),
    "epsilon_end": (0.0,),
    "alpha": (1.0,),
    "beta": (0.5,),
    "clip_above": (math.inf,),
    "tau": (0.005,),
    "target_entropy": (-1.0,),
    "density": "gaussian",
    "baseline_actions": 4,
}
MUJOCO = (
    "Ant", "HalfCheetah", "Hopper", "Humanoid", "HumanoidStandup", "InvertedDoublePendulum",
    "InvertedPendulum", "Pusher", "Reacher", "Swimmer", "Walker2d",
)  # fmt: skip
_MUJOCO: dict[str, Any] = {"steps": 1_000_000, "warmup": 10_000}
ACTOR_CRITIC_ENVS: dict[str, dict[str, Any]] = {
    "Pendulum-v1": {"steps": 20_000, "learning_rate": (1e-3,), "buffer": 100_000},
    "LunarLanderContinuous-v3": {
        "steps": 200_000,
        "learning_rate": (7.3e-4,),
        "tau": (0.01,),
        "warmup": 10_000,
    },
    **{f"{name}-v5": _MUJOCO for name in MUJOCO},
    "Swimmer-v5": {**_MUJOCO, "gamma": (0.9999,)},
}
# For discrete actions, in addition to the settings of a value agent. Three losses of different
# scales share one step size, so that the optimiser must not depend on the scale.
DISCRETE_ACTOR: dict[str, Any] = {
    "optimiser": "adam",
    "tau": (0.005,),
    "target_entropy": (0.3,),
    "automatic_alpha": False,
}
# Overrides for vector observations with the preset `tuned`, found on CartPole.
DISCRETE_VECTORS: dict[str, Any] = {
    "hidden": (64, 64),
    "batch": 64,
    "train_period": 1,
    "target_period": 1000,  # nothing is copied: metrics and checkpoints, as ever
    "warmup": 1_000,
    "beta": (0.5,),
    "tau": (0.02,),
    "epsilon": (1.0,),
    "epsilon_end": (0.02,),
}


def has_box(config: Config, kind: str) -> bool:
    """Returns whether an environment's actions are vectors within bounds."""
    from tsallax import envs

    if kind == "native":
        return envs.make(config.env).action_box is not None
    if kind != "gymnasium":
        return False
    from tsallax.envs.host import spaces_of

    return spaces_of(config.env, bool(config.one_hot))[1] is not None


def continuous_defaults(config: Config) -> dict[str, Any]:
    """The defaults for continuous actions, for which there is only one preset."""
    if config.choices or config.preset not in (None, "tuned"):
        raise ValueError(f"{config.algo} has one preset, tuned, and no choices")
    own = ACTOR_CRITIC_ENVS.get(config.env, {})
    automatic = {"automatic_alpha": config.alpha is None}
    return COMMON | ACTOR_CRITIC | own | automatic | {"preset": "tuned", "learner": "replay"}


def discrete_defaults(value_agent: dict[str, Any], row: "ActorCritic") -> dict[str, Any]:
    """The defaults for discrete actions: a value agent's, and those of the actor."""
    vectors = value_agent["preset"] == "tuned" and value_agent["network"] == "mlp"
    best = DISCRETE_VECTORS if vectors else {}
    return value_agent | DISCRETE_ACTOR | best | {"actor": row.actor}


def check_actor_critic(config: Config, agent: str) -> None:
    """Refuse settings that have no meaning for this kind of actor."""
    (_check_discrete if agent == "discrete actor" else _check_continuous)(config)


def _check_discrete(config: Config) -> None:
    _check_shannon(config)
    if any(math.isinf(q) for q in config.q):
        raise ValueError(f"q must be finite for {config.algo}: a greedy actor has no gradient")
    if config.policy != "exact":
        raise ValueError(f"{config.algo} has the exact policy, not {config.policy!r}")
    if any(not 0 < share < 1 for share in config.target_entropy):
        raise ValueError("target_entropy must be between 0 and 1, a share, for discrete actions")


def _check_continuous(config: Config) -> None:
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


def _check_shannon(config: Config) -> None:
    if config.algo == "sac" and config.q != (1.0,):
        raise ValueError("sac has q = 1; for another q use tac")
