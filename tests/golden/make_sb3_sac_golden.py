"""Writes sb3_sac.npz: the losses of Stable-Baselines3's SAC on a fixed batch, with fixed noise.

Run with a Python that has torch 2.13.0 and stable-baselines3 2.9.2:
`python tests/golden/make_sb3_sac_golden.py`. It is not needed for the tests, which read the file
only. The noise of both draws is given, in the place of torch's, and the three losses are those that
its `train` records; they come before its first steps, but for the actor's, which sees the critics
after theirs: its learning rate is 0. Stable-Baselines3 adds 1e-6 under the logarithm of its squash.
"""

from pathlib import Path
from unittest import mock

import gymnasium
import numpy as np
import torch
from gymnasium.spaces import Box
from stable_baselines3 import SAC
from stable_baselines3.common.logger import configure
from stable_baselines3.common.type_aliases import ReplayBufferSamples

BATCH, STATES, ACTIONS, HIDDEN = 16, 3, 2, (8, 8)


class Nowhere(gymnasium.Env):
    observation_space = Box(-1, 1, (STATES,), np.float32)
    action_space = Box(-1, 1, (ACTIONS,), np.float32)


def main() -> None:
    torch.manual_seed(0)
    model = SAC(
        "MlpPolicy",
        Nowhere(),
        learning_rate=0.0,
        batch_size=BATCH,
        ent_coef="auto_0.3",
        gamma=0.95,
        policy_kwargs={"net_arch": list(HIDDEN)},
        device="cpu",
    )
    model.set_logger(configure(format_strings=[]))
    with torch.no_grad():  # a target that differs from the critics, and a narrower policy
        for parameter in model.critic_target.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
        model.actor.log_std.bias -= 1.0
    random = np.random.default_rng(0)
    draw = lambda *shape: random.normal(size=shape).astype(np.float32)  # noqa: E731
    arrays = {
        "observation": draw(BATCH, STATES),
        "action": np.tanh(draw(BATCH, ACTIONS)),
        "reward": draw(BATCH),
        "terminated": random.random(BATCH) < 0.3,
        "next_observation": draw(BATCH, STATES),
        "noise": draw(2, BATCH, ACTIONS),
        "alpha": np.float32(0.3),
        "gamma": np.float32(0.95),
    }
    networks = {
        "actor": [*model.actor.latent_pi, model.actor.mu, model.actor.log_std],
        "critic/0": model.critic.qf0,
        "critic/1": model.critic.qf1,
        "target/0": model.critic_target.qf0,
        "target/1": model.critic_target.qf1,
    }
    for name, layers in networks.items():
        linear = [layer for layer in layers if isinstance(layer, torch.nn.Linear)]
        for i, layer in enumerate(linear):
            arrays[f"{name}/{i}/weight"] = layer.weight.detach().numpy().T.copy()
            arrays[f"{name}/{i}/bias"] = layer.bias.detach().numpy().copy()
    torch_of = {name: torch.as_tensor(x) for name, x in arrays.items()}
    batch = ReplayBufferSamples(
        torch_of["observation"],
        torch_of["action"],
        torch_of["next_observation"],
        torch_of["terminated"].float()[:, None],
        torch_of["reward"][:, None],
    )
    noises = iter(torch_of["noise"])
    given = mock.patch.object(
        torch.distributions.Normal,
        "rsample",
        lambda self, shape=None: self.loc + self.scale * next(noises),
    )
    model.replay_buffer = mock.Mock(sample=lambda *_, **__: batch)
    with given:
        model.train(1, BATCH)
    found = model.logger.name_to_value
    for name in ("actor_loss", "critic_loss", "ent_coef_loss"):
        arrays[name] = np.float32(found[f"train/{name}"])
    np.savez_compressed(Path(__file__).parent / "sb3_sac.npz", **arrays)
    print({name: float(found[f"train/{name}"]) for name in ("actor_loss", "critic_loss")})


if __name__ == "__main__":
    main()
