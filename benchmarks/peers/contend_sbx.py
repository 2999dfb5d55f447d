"""DQN of sbx, the JAX version of Stable-Baselines3."""

import os

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
import torch
from contend_sb3 import learn, make_env, numbers
from sbx import DQN
from sbx.common.type_aliases import RLTrainState
from sbx.dqn.policies import DQNPolicy
from turns import arguments
from works import CONV, RMSPROP


class Network(nn.Module):
    """MinAtar's network: a 3x3 convolution and one hidden layer."""

    actions: int
    width: int

    @nn.compact
    def __call__(self, images: jax.Array) -> jax.Array:
        x = nn.relu(nn.Conv(CONV, (3, 3), padding="VALID")(images.astype(jnp.float32)))
        x = nn.relu(nn.Dense(self.width)(x.reshape(x.shape[0], -1)))
        return nn.Dense(self.actions)(x)


class Policy(DQNPolicy):
    """sbx's own policy with another network."""

    def build(self, key, lr_schedule):
        k_next, k_params = jax.random.split(key)
        self.qf = Network(int(self.action_space.n), self.n_units)
        params = self.qf.init(k_params, jnp.zeros((1, *self.observation_space.shape)))
        self.qf_state = RLTrainState.create(
            apply_fn=jax.jit(self.qf.apply),
            params=params,
            target_params=params,
            tx=self.optimizer_class(lr_schedule(1), **self.optimizer_kwargs),
        )
        return k_next


if __name__ == "__main__":
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    work, _ = arguments()
    policy: dict[str, object] = {"net_arch": list(work.hidden)}
    if work.optimiser == "rmsprop":
        rmsprop = {**RMSPROP, "eps_in_sqrt": False}
        policy |= {"optimizer_class": optax.rmsprop, "optimizer_kwargs": rmsprop}
    kind = Policy if work.env.startswith("MinAtar/") else "MlpPolicy"
    model = DQN(kind, make_env(work), policy_kwargs=policy, **numbers(work))
    learn(model, work, settle=work.target_period)  # compiles the first copy of the target
