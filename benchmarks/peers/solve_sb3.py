"""Stable-Baselines3's DQN until an evaluation reaches the goal.

The settings are those of rl-baselines3-zoo (hyperparams/dqn.yml). The zoo has no MinAtar: there
they are those of the games' authors, with their network. Evaluations are excluded from the time.
"""

from typing import Any

import gymnasium
import torch
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from tasks import Attempt, Stopwatch, answer, attempt

EPISODES = 20
# Steps between evaluations, and of the whole run.
EVERY = {"cartpole": 2_500, "acrobot": 2_500, "lunarlander": 5_000, "breakout": 10_000}
STEPS = {"cartpole": 50_000, "acrobot": 100_000, "lunarlander": 100_000, "breakout": 5_000_000}


class UntilSolved(BaseCallback):
    """Evaluates periodically, and ends the training at the goal or at the time limit."""

    def __init__(self, asked: Attempt, env: gymnasium.Env):
        super().__init__()
        self.asked, self.env, self.watch = asked, Monitor(env), Stopwatch()
        self.solved, self.mean, self.seconds = False, 0.0, 0.0

    def _on_step(self) -> bool:
        if self.num_timesteps % EVERY[self.asked.name]:
            return True
        self.seconds = self.watch.seconds()
        with self.watch.left_out():
            mean, _ = evaluate_policy(self.model, self.env, EPISODES, deterministic=True)
        self.mean, self.solved = float(mean), float(mean) >= self.asked.task.goal
        return not self.solved and self.seconds < self.asked.limit


def cartpole() -> dict[str, Any]:
    return {
        "learning_rate": 2.3e-3,
        "batch_size": 64,
        "buffer_size": 100_000,
        "learning_starts": 1000,
        "gamma": 0.99,
        "target_update_interval": 10,
        "train_freq": 256,
        "gradient_steps": 128,
        "exploration_fraction": 0.16,
        "exploration_final_eps": 0.04,
        "policy_kwargs": {"net_arch": [256, 256]},
    }


def control() -> dict[str, Any]:
    """The settings for Acrobot and LunarLander."""
    return {
        "learning_rate": 6.3e-4,
        "batch_size": 128,
        "buffer_size": 50_000,
        "learning_starts": 0,
        "gamma": 0.99,
        "target_update_interval": 250,
        "train_freq": 4,
        "gradient_steps": -1,
        "exploration_fraction": 0.12,
        "exploration_final_eps": 0.1,
        "policy_kwargs": {"net_arch": [256, 256]},
    }


def breakout() -> dict[str, Any]:
    from contend_sb3 import Convolution
    from works import RMSPROP

    rmsprop = {"alpha": RMSPROP["decay"], "eps": RMSPROP["eps"], "centered": True}
    return {
        "learning_rate": 2.5e-4,
        "batch_size": 32,
        "buffer_size": 100_000,
        "learning_starts": 5000,
        "gamma": 0.99,
        "target_update_interval": 1000,
        "train_freq": 1,
        "exploration_fraction": 100_000 / STEPS["breakout"],
        "exploration_final_eps": 0.1,
        "max_grad_norm": float("inf"),
        "policy_kwargs": {
            "net_arch": [128],
            "features_extractor_class": Convolution,
            "optimizer_class": torch.optim.RMSprop,
            "optimizer_kwargs": rmsprop,
        },
    }


SETTINGS = {"cartpole": cartpole, "acrobot": control, "lunarlander": control, "breakout": breakout}


def make(env: str) -> gymnasium.Env:
    if not env.startswith("MinAtar/"):
        return gymnasium.make(env)
    from contend_sb3 import make_env
    from works import WORKS

    return make_env(WORKS["breakout"])


def main() -> None:
    torch.set_num_threads(1)
    asked = attempt()
    settings = SETTINGS[asked.name]()
    model = DQN("MlpPolicy", make(asked.task.env), seed=asked.seed, device="cpu", **settings)
    until = UntilSolved(asked, make(asked.task.env))
    model.learn(STEPS[asked.name], callback=until)
    answer(until.solved, until.seconds, model.num_timesteps, until.mean)


if __name__ == "__main__":
    main()
