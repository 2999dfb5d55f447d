"""The parallel learner's part of a configuration; the numbers were found by experiment.

docs/parallel.md has them.
"""

from typing import Any

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


def rollouts_of(config: Any) -> Any:
    from tsallax.learners.parallel_update import Rollouts

    return Rollouts(
        config.steps,
        config.num_envs,
        config.rollout,
        config.epochs,
        config.minibatches,
        config.target_period,
        config.clip_rewards,
        config.frozen_bonus,
    )
