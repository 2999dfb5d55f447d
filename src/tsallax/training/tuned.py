"""What works: settings per environment and learner, found by experiment. Data only.

docs/what-works.md has what each of them reaches, and the commands that show it. An entry overrides
the general settings of its learner; an environment without one has the general settings of its
kind of observation.
"""

from typing import Any

Settings = dict[str, dict[str, Any]]  # by learner, the one to choose first

# By the paper's table that the observations are alike: vectors, MinAtar's planes, images.
GENERAL: dict[str, Settings] = {
    "gym": {"parallel": {"steps": 500_000}, "replay": {"steps": 100_000}},
    "minatar": {"parallel": {"steps": 2_000_000}, "replay": {"steps": 1_000_000}},
    "atari": {"parallel": {"steps": 10_000_000}, "replay": {"steps": 10_000_000}},
}
TUNED: dict[str, Settings] = {
    "CartPole-v1": {"parallel": {"steps": 300_000, "eval_episodes": 100}},
    "Acrobot-v1": {"parallel": {"steps": 500_000, "eval_episodes": 100}},
    "LunarLander-v3": {"parallel": {"steps": 1_000_000, "eval_episodes": 20}},
    # rl-zoo's settings for DQN: random actions hardly ever reach the flag, so that what does has to
    # be replayed. Episodes are longer than Gymnasium's 200 steps, which are too few for random
    # actions; a time limit is no termination, so this changes where episodes begin, not the values.
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
# Actor-critics with discrete actions, where observations are vectors: found on CartPole.
DISCRETE_ACTOR: dict[str, Any] = {
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
SMALLEST_IMAGE = 36  # pixels each way, of the network for Atari; smaller ones have MinAtar's


def settings(env: str, domain: str, learner: str | None) -> tuple[str, dict[str, Any]]:
    """The learner, which may be given, and its settings for an environment."""
    own, general = TUNED.get(env, {}), GENERAL[domain]
    learner = learner or next(iter(own or general))
    return learner, {**general[learner], **own.get(learner, {})}
