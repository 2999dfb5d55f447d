"""The preset `tuned`: the parallel learner's settings, and those per environment, by experiment.

docs/what-works.md lists the return that each reaches, and the commands to reproduce it. An entry
overrides the general settings of its learner; an environment without one uses the general settings
of its kind of observation.
"""

from typing import Any

from tsallax.training.config import Config
from tsallax.training.presets import COMMON, PRESETS, silent_choices

Settings = dict[str, dict[str, Any]]  # by learner; the first is the default

# The parallel learner's settings: see docs/parallel.md.
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

# By the paper's domain with the same kind of observations: vectors, MinAtar's planes, images.
GENERAL: dict[str, Settings] = {
    "gym": {"parallel": {"steps": 500_000}, "replay": {"steps": 100_000}},
    "minatar": {"parallel": {"steps": 2_000_000}, "replay": {"steps": 1_000_000}},
    "atari": {"parallel": {"steps": 10_000_000}, "replay": {"steps": 10_000_000}},
}
TUNED: dict[str, Settings] = {
    "CartPole-v1": {"parallel": {"steps": 300_000, "eval_episodes": 100}},
    "Acrobot-v1": {"parallel": {"steps": 500_000, "eval_episodes": 100}},
    "LunarLander-v3": {"parallel": {"steps": 1_000_000, "eval_episodes": 20}},
    # rl-zoo's settings for DQN: random actions hardly ever reach the flag, so that the transitions
    # that do must be replayed. Episodes are longer than Gymnasium's 200 steps, which are too few
    # for random actions; a time limit does not terminate, so this changes where episodes begin,
    # not the values.
    "MountainCar-v0": {
        "replay": {
            "steps": 120_000,
            "time_limit": 1000,
            "beta": (0.3,),
            "gamma": (0.98,),
            "learning_rate": (4e-3,),
            "loss": "huber",
            "max_grad_norm": (10.0,),
            "acting": "argmax",
            "hidden": (256, 256),
            "batch": 128,
            "buffer": 10_000,
            "warmup": 1_008,
            "random_warmup": True,
            "train_period": 16,
            "updates": 8,
            "target_period": 608,
            "epsilon": (1.0,),
            "epsilon_end": (0.07,),
            "epsilon_fraction": 0.2,
            "eval_episodes": 100,
        }
    },
}
SMALLEST_IMAGE = 36  # least height and width for Atari's network; smaller images use MinAtar's


def tuned_defaults(config: Config, domain: str, kind: str, shown: Any) -> dict[str, Any]:
    """The tuned settings of an environment or, if it is unknown, of its kind of observation."""
    image: dict[str, Any] = {}
    if kind == "gymnasium" and config.env not in TUNED and config.network is None:
        from tsallax.envs.host import spaces_of

        shown, _ = spaces_of(config.env, bool(config.one_hot))
    if shown is not None:
        domain, image = _alike(shown.shape, shown.dtype)
    own, general = TUNED.get(config.env, {}), GENERAL[domain]
    learner = config.learner or next(iter(own or general))
    filling = COMMON | PRESETS[domain] | silent_choices("paper", domain, "scalar")
    filling |= PARALLEL[domain] if learner == "parallel" else {}
    filling |= image | general[learner] | own.get(learner, {})
    return filling | {"preset": "tuned", "learner": learner}


def _alike(shape: tuple[int, ...], dtype: Any) -> tuple[str, dict[str, Any]]:
    """The domain with the same kind of observations, and the settings that differ from it."""
    from tsallax.networks.dense import is_image

    if not is_image(shape, dtype):
        return "gym", {}
    small = min(shape[:2]) < SMALLEST_IMAGE
    own = {"network": "minatar-conv", "hidden": (128,)} if small else {}
    return "atari", {"clip_rewards": False, **own}
