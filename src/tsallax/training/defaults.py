"""The values of options that were not given: by the environment, the preset and the algorithm."""

import dataclasses
from typing import Any

from tsallax.training import tuned
from tsallax.training.config import Config
from tsallax.training.presets import (
    ACTOR_CRITIC,
    ACTOR_CRITIC_ENVS,
    COMMON,
    DISCRETE_ACTOR,
    PARALLEL,
    PRESETS,
    silent_choices,
)


def has_box(config: Config, kind: str) -> bool:
    """Whether an environment's actions are vectors within bounds."""
    from tsallax import envs

    if kind != "gymnasium":
        return kind == "native" and envs.make(config.env).action_box is not None
    from tsallax.envs.host import make_host

    one = make_host(config.env, 1, one_hot=bool(config.one_hot))
    one.close()
    return one.action_box is not None


def check_kind(algo: str, env_id: str, box: bool) -> None:
    """Refuse an algorithm of discrete actions for continuous ones."""
    from tsallax.operators.table import ACTOR_CRITICS

    if box and algo not in ACTOR_CRITICS:
        raise ValueError(f"{env_id} has continuous actions: --algo {', '.join(ACTOR_CRITICS)}")


def discrete_actor_defaults(config: Config, kind: str, actor: str, shown: Any) -> dict[str, Any]:
    """As for a value agent with a replay, and what it does not have."""
    own = value_agent_defaults(dataclasses.replace(config, learner="replay"), kind, shown)
    vectors = own["preset"] == "tuned" and own["network"] == "mlp"
    best = tuned.DISCRETE_ACTOR if vectors else {}
    return own | DISCRETE_ACTOR | best | {"actor": actor}


def continuous_actor_defaults(config: Config) -> dict[str, Any]:
    """There is one preset of actor-critics with continuous actions."""
    if config.choices or config.preset not in (None, "tuned"):
        raise ValueError(f"{config.algo} has one preset, tuned, and no choices")
    own = ACTOR_CRITIC_ENVS.get(config.env, {})
    automatic = {"automatic_alpha": config.alpha is None}
    return COMMON | ACTOR_CRITIC | own | automatic | {"preset": "tuned", "learner": "replay"}


def value_agent_defaults(config: Config, kind: str, shown: Any) -> dict[str, Any]:
    """What the preset and the choices say, the preset in effect included."""
    preset = config.preset or ("paper" if config.choices else "tuned")
    games = config.env.startswith("MinAtar/")
    domain = "atari" if kind == "atari" else "minatar" if games else "gym"
    if preset == "tuned":
        if config.choices:
            raise ValueError(f"the choices {config.choices!r} are for the preset paper, not tuned")
        return _tuned(config, domain, kind, shown)
    domain = domain if preset == "paper" else preset
    filling = COMMON | PRESETS[domain] | {"preset": domain, "choices": "paper"}
    choices = config.choices or "paper"
    filling |= silent_choices(choices, domain, config.head or filling["head"])
    if domain == "gym" and config.env.startswith("CartPole"):
        filling["target_period"] = 1000
    return filling | (PARALLEL[domain] if config.learner == "parallel" else {})


def _tuned(config: Config, domain: str, kind: str, shown: Any) -> dict[str, Any]:
    """By the environment; for one that is not known, by what it shows."""
    image: dict[str, Any] = {}
    if kind == "gymnasium" and config.env not in tuned.TUNED and config.network is None:
        shown = shown_by(config)
    if shown is not None:
        domain, image = _alike(shown.shape, shown.dtype)
    learner, own = tuned.settings(config.env, domain, config.learner)
    filling = COMMON | PRESETS[domain] | silent_choices("paper", domain, "scalar")
    filling |= PARALLEL[domain] if learner == "parallel" else {}
    return filling | image | own | {"preset": "tuned", "learner": learner}


def shown_by(config: Config) -> Any:
    """Shape and type of what an environment on the host shows."""
    from tsallax.envs.host import make_host

    one = make_host(config.env, 1, one_hot=bool(config.one_hot))
    one.close()
    return one.observation


def _alike(shape: tuple[int, ...], dtype: Any) -> tuple[str, dict[str, Any]]:
    """The domain that an environment's observations are alike, and what differs for it."""
    from tsallax.networks.dense import is_image

    if not is_image(shape, dtype):
        return "gym", {}
    small = min(shape[:2]) < tuned.SMALLEST_IMAGE
    own = {"network": "minatar-conv", "hidden": (128,)} if small else {}
    return "atari", {"clip_rewards": False, **own}
