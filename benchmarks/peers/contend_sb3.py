"""Stable-Baselines3's DQN, or for Pong sb3-contrib's QR-DQN."""

import math
import os

import gymnasium
import minatar.gym
import torch
from sb3_contrib import QRDQN
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecFrameStack
from turns import Turns, arguments
from works import CONV, QUANTILES, RMSPROP, Work


class Convolution(BaseFeaturesExtractor):
    """A 3x3 convolution of MinAtar's images, whose channels are last."""

    def __init__(self, observation_space: gymnasium.spaces.Box):
        rows, columns, planes = observation_space.shape
        super().__init__(observation_space, CONV * (rows - 2) * (columns - 2))
        self.layers = torch.nn.Sequential(
            torch.nn.Conv2d(planes, CONV, 3), torch.nn.ReLU(), torch.nn.Flatten()
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.layers(images.permute(0, 3, 1, 2))


class Steps(BaseCallback):
    def __init__(self, turns: Turns):
        super().__init__()
        self.turns = turns

    def _on_step(self) -> bool:
        self.turns.done()
        return True


def make_env(work: Work):
    if work.env.startswith("ALE/"):
        import ale_py

        gymnasium.register_envs(ale_py)
        emulator = {"frameskip": 1, "repeat_action_probability": 0.0}
        lives = {"terminal_on_life_loss": False}
        env = make_atari_env(work.env, 1, 0, env_kwargs=emulator, wrapper_kwargs=lives)
        return VecFrameStack(env, 4)
    if work.env.startswith("MinAtar/"):
        minatar.gym.register_envs()
        return gymnasium.make(f"{work.env}-v0")  # v0 has all six actions
    return gymnasium.make(work.env)


def numbers(work: Work) -> dict[str, object]:
    """The arguments with the same names in DQN, QR-DQN and sbx's DQN."""
    return {
        "learning_rate": work.learning_rate,
        "buffer_size": work.buffer,
        "learning_starts": work.batch,
        "batch_size": work.batch,
        "gamma": work.gamma,
        "train_freq": work.train_period,
        "target_update_interval": work.target_period,
        "exploration_initial_eps": work.epsilon,
        "exploration_final_eps": work.epsilon,
        "seed": 0,
    }


def learn(model, work: Work, settle: int) -> None:
    def fill():
        for array in vars(model.replay_buffer).values():
            if hasattr(array, "fill"):
                array.fill(0)

    # The callback comes before the update of its step.
    turns = Turns(work.batch, 2 * work.train_period, settle, fill)
    model.learn(10**9, callback=Steps(turns))


def make_model(work: Work):
    if work.env.startswith("ALE/"):
        # The class is given explicitly, as the default has another eps.
        policy = {"n_quantiles": QUANTILES, "optimizer_class": torch.optim.Adam}
        return QRDQN("CnnPolicy", make_env(work), policy_kwargs=policy, **numbers(work))
    policy = {"net_arch": list(work.hidden)}
    if work.optimiser == "rmsprop":
        rmsprop = {"alpha": RMSPROP["decay"], "eps": RMSPROP["eps"], "centered": True}
        policy |= {"optimizer_class": torch.optim.RMSprop, "optimizer_kwargs": rmsprop}
        policy |= {"features_extractor_class": Convolution}
    own = {**numbers(work), "max_grad_norm": math.inf}
    return DQN("MlpPolicy", make_env(work), policy_kwargs=policy, device="cpu", **own)


if __name__ == "__main__":
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    work, _ = arguments()
    learn(make_model(work), work, settle=0)
