"""Tables of settings: the paper's, what it does not say, and the parallel learner's. Data only."""

import math
from typing import Any

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
    "q": (2.0,),  # where the algorithm has none of its own
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
EXPONENTS = {"priority_exponent": (0.6,), "importance_exponent": (0.4,)}  # Schaul et al. 2016
OPTIMISER_EPS = {"adam": 1e-8, "radam": 1e-8, "rmsprop": 0.01}
# The text is silent on these.
# paper: as the text prints its loss.
# sb3: as the base library of each domain did then: Stable-Baselines3 1.1 to 1.5 (gym), the QR-DQN
#   of sb3-contrib (quantiles, Atari), the game authors' own configuration (MinAtar; appendix B.2).
# zoo: as rl-zoo's entries of 2021, which Table 1 resembles: learning from the start, with as many
#   updates as environment steps.
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
# The parallel learner's numbers, found by experiment: docs/parallel.md.
_PARALLEL: dict[str, Any] = {
    "optimiser": "radam",
    "learning_rate": (5e-4,),
    "learning_rate_end": (0.0,),
    "max_grad_norm": (10.0,),
    "loss": "squared",
    "acting": "pi",
    "layer_norm": True,
    "frozen_bonus": False,
    "epsilon": (1.0,),
    "epsilon_end": (0.05,),
    "alpha": (0.03,),
    "beta": (0.5,),
    "reward_scale": (1.0,),
    "rollout": 32,
}
PARALLEL: dict[str, dict[str, Any]] = {
    "gym": {
        **_PARALLEL,
        "hidden": (128, 128),
        "num_envs": 16,
        "epochs": 4,
        "minibatches": 4,
        "lambda_": (0.9,),
        "learning_rate": (2.5e-4,),
        "alpha": (0.01,),
        "beta": (0.3,),
        "reward_scale": (0.1,),
        "epsilon_fraction": 0.3,
        "target_period": 10_240,
    },
    "minatar": {
        **_PARALLEL,
        "num_envs": 128,
        "epochs": 2,
        "minibatches": 16,
        "lambda_": (0.65,),
        "epsilon_fraction": 0.2,
        "target_period": 40_960,
    },
    "atari": {
        **_PARALLEL,
        "head": "scalar",
        "num_envs": 8,
        "epochs": 2,
        "minibatches": 16,
        "lambda_": (0.65,),
        "epsilon_fraction": 0.1,
        "target_period": 8_192,
    },
}


# Actor-critics: as Stable-Baselines3's SAC. By environment, rl-zoo's settings for SAC, but for its
# networks and a step size that it lowers linearly; random actions fill the replay before learning.
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
# With discrete actions, beside the settings of a value agent. Three losses of different sizes share
# one step size, so that the optimiser must not depend on the size.
DISCRETE_ACTOR: dict[str, Any] = {
    "optimiser": "adam",
    "tau": (0.005,),
    "target_entropy": (0.3,),
    "automatic_alpha": False,
}


def silent_choices(choices: str, preset: str, head: str) -> dict[str, Any]:
    """What a set of choices says about a domain and a kind of head."""
    if preset not in CHOICES[choices]:
        there = ", ".join(CHOICES[choices])
        raise ValueError(f"the choices {choices!r} are for the preset {there}, not {preset}")
    quantile = _QUANTILE if head == "quantile" and choices != "paper" else {}
    return {**CHOICES[choices][preset], **quantile}
