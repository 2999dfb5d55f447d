"""Presets: the paper's tables, the choices on which it is silent, and a user's own files."""

import dataclasses
import math
from pathlib import Path
from typing import Any

from tsallax.spelling import suggest
from tsallax.training.config import FIELDS, Config

# Tables 1 to 3 of the paper. SAL's law as the text prints it is the algorithm `sal-printed`.
PRESETS: dict[str, dict[str, Any]] = {
    "gym": {
        "network": "mlp",
        "hidden": (512, 512),
        "optimiser": "adam",
        "learning_rate": (1e-3,),
        "batch": 128,
        "buffer": 50_000,
        "train_period": 4,
        "target_period": 2500,
        "epsilon": (0.01,),
        "epsilon_end": (0.01,),
        "alpha": (0.03,),
        "beta": (0.99,),
    },
    "minatar": {
        "network": "minatar-conv",
        "hidden": (128,),
        "optimiser": "rmsprop",
        "learning_rate": (2.5e-4,),
        "batch": 32,
        "buffer": 100_000,
        "train_period": 1,
        "target_period": 1000,
        "epsilon": (1.0,),
        "epsilon_end": (0.05,),
        "alpha": (0.03,),
        "beta": (0.9,),
    },
    "atari": {
        "network": "nature",
        "head": "quantile",
        "hidden": (512,),
        "optimiser": "adam",
        "learning_rate": (1e-4,),
        "batch": 32,
        "buffer": 1_000_000,
        "train_period": 4,
        "target_period": 8000,
        "epsilon": (1.0,),
        "epsilon_end": (0.01,),
        "alpha": (10.0,),
        "beta": (0.9,),
        "stack": 4,
        "clip_rewards": True,
    },
}
COMMON: dict[str, Any] = {
    "q": (2.0,),  # unless the algorithm has a default of its own
    "gamma": (0.99,),
    "entropy": (0.0,),
    "clip": (-math.inf,),
    "delta": (1e-8,),
    "learner": "replay",
    "steps": 100_000,
    "eval_episodes": 10,
    "head": "scalar",
    "clip_rewards": False,
    "updates": 1,
    "stack": 0,
    "epsilon_fraction": 0.1,
    "sal_draw": "update",
    "layer_norm": False,
}
NAMED = ("tuned", "paper", *PRESETS)
# The options that a preset can set.
OPEN = [n for n, field in FIELDS.items() if field.default is None and n != "init_cell"]
EXPONENTS = {"priority_exponent": (0.6,), "importance_exponent": (0.4,)}  # Schaul et al. 2016
OPTIMISER_EPS = {"adam": 1e-8, "radam": 1e-8, "rmsprop": 0.01}
# Choices on which the paper is silent.
# paper: the loss as the text prints it.
# sb3: as in the base library of each domain then: Stable-Baselines3 1.1 to 1.5 (gym), the QR-DQN
#   of sb3-contrib (quantiles, Atari), the game authors' own configuration (MinAtar; appendix B.2).
# zoo: as in rl-zoo's entries of 2021, which Table 1 resembles: learning starts at once, with as
#   many updates as environment steps.
_PRINTED = {
    "loss": "squared",
    "max_grad_norm": (math.inf,),
    "acting": "pi",
    "warmup": 0,
    "random_warmup": False,
}
_SB3 = {
    "loss": "huber",
    "max_grad_norm": (10.0,),
    "acting": "argmax",
    "warmup": 50_000,
    "random_warmup": True,
}
_QUANTILE = {"max_grad_norm": (math.inf,), "optimiser_eps": 0.01 / 32}  # of sb3-contrib's QR-DQN
CHOICES: dict[str, dict[str, dict[str, Any]]] = {
    "paper": dict.fromkeys(PRESETS, _PRINTED),
    "sb3": {
        "gym": _SB3,
        "minatar": {**_SB3, "max_grad_norm": (math.inf,), "warmup": 5_000},
        "atari": {**_SB3, "episodic_life": True},
    },
    "zoo": {"gym": {**_SB3, "warmup": 0, "random_warmup": False, "updates": 4}},
}


def paper_defaults(config: Config, domain: str) -> dict[str, Any]:
    """The defaults from a domain's table, the choices, and the learner's own settings."""
    choices = config.choices or "paper"
    filling = COMMON | PRESETS[domain] | {"preset": domain, "choices": "paper"}
    filling |= silent_choices(choices, domain, config.head or filling["head"])
    if domain == "gym" and config.env.startswith("CartPole"):
        filling["target_period"] = 1000
    if config.learner == "parallel":
        from tsallax.training.tuned import PARALLEL

        filling |= PARALLEL[domain]
    return filling


def silent_choices(choices: str, preset: str, head: str) -> dict[str, Any]:
    """The settings of a set of choices for a domain and a kind of head."""
    if preset not in CHOICES[choices]:
        there = ", ".join(CHOICES[choices])
        raise ValueError(f"the choices {choices!r} are for the preset {there}, not {preset}")
    quantile = _QUANTILE if head == "quantile" and choices != "paper" else {}
    return {**CHOICES[choices][preset], **quantile}


def with_preset_file(config: Config) -> Config:
    """The configuration with the contents of its preset file, if `preset` names one.

    Options that were given take precedence. The file is a flat TOML table of options that a preset
    can set; its own `preset` names the preset that it is based on.
    """
    name = config.preset
    if name is None or name in NAMED or not name.endswith(".toml"):
        return config
    from tsallax.storage.toml_file import read_toml
    from tsallax.training.given import field_value

    table = read_toml(Path(name))
    config = dataclasses.replace(config, preset=None)
    for key in table:
        if key not in OPEN:
            known = "a preset cannot set it" if key in FIELDS else suggest(key, OPEN)
            raise ValueError(f"{name}: no option {key!r}; {known}")
    try:
        found = {key: field_value(key, value) for key, value in table.items()}
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from None
    return dataclasses.replace(
        config, **{key: x for key, x in found.items() if getattr(config, key) is None}
    )
