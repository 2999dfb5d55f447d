"""rejax's PQN until an evaluation reaches the goal.

Its own `train` runs `train_iteration` in a compiled loop up to an evaluation, and returns at the
very end. Here the loop and the evaluation are compiled separately, so that the first evaluation at
the goal ends the training, and evaluations do not count.
"""

from typing import Any

import flax.linen as nn
import jax
from rejax import PQN
from rejax.networks import EpsilonGreedyPolicy
from tasks import Attempt, Stopwatch, answer, attempt
from works import CONV

CARTPOLE = {  # configs/gymnax/cartpole.yaml of rejax
    "env": "CartPole-v1",
    "num_envs": 16,
    "num_steps": 128,
    "num_minibatches": 16,
    "max_grad_norm": 10,
    "learning_rate": 0.0003,
    "num_epochs": 5,
    "total_timesteps": 524_288,
    "eval_freq": 16_384,
    "eps_start": 1,
    "eps_end": 0.05,
    "exploration_fraction": 0.5,
    "gamma": 0.99,
    "td_lambda": 0.9,
}
BREAKOUT = {  # rejax has no settings for it: these are PQN's authors' for MinAtar
    "num_envs": 128,
    "num_steps": 32,
    "num_minibatches": 32,
    "max_grad_norm": 10,
    "learning_rate": 0.0005,
    "num_epochs": 2,
    "total_timesteps": 10_000_000,
    "eval_freq": 102_400,
    "eps_start": 1,
    "eps_end": 0.05,
    "exploration_fraction": 0.1,
    "gamma": 0.99,
    "td_lambda": 0.65,
}


class Network(nn.Module):
    """MinAtar's convolution and hidden layer, each normalised."""

    action_dim: int

    @nn.compact
    def __call__(self, images):
        x = nn.relu(nn.LayerNorm()(nn.Conv(CONV, (3, 3), padding="VALID")(images)))
        x = nn.relu(nn.LayerNorm()(nn.Dense(128)(x.reshape(x.shape[0], -1))))
        return nn.Dense(self.action_dim)(x)

    def take(self, images, action):
        return jax.vmap(lambda Q, a: Q[a])(self(images), action)


def make_algorithm(name: str) -> Any:
    if name == "cartpole":
        return PQN.create(**CARTPOLE)
    from sticky import breakout

    env, params = breakout()
    algorithm = PQN.create(env=env, env_params=params, **BREAKOUT)
    return algorithm.replace(agent=EpsilonGreedyPolicy(Network)(action_dim=6))


def solve(asked: Attempt, watch: Stopwatch) -> None:
    algorithm = make_algorithm(asked.name)
    rollout = algorithm.num_envs * algorithm.num_steps
    rounds = -(-algorithm.eval_freq // rollout)
    state = jax.jit(algorithm.init_state)(jax.random.key(asked.seed))

    @jax.jit
    def train(state):
        return jax.lax.fori_loop(0, rounds, lambda _, s: algorithm.train_iteration(s), state)

    evaluate = jax.jit(lambda state, key: algorithm.eval_callback(algorithm, state, key)[1].mean())
    solved, mean, steps, seconds = False, 0.0, 0, 0.0
    while not solved and steps < algorithm.total_timesteps and seconds < asked.limit:
        state = jax.block_until_ready(train(state))
        steps, seconds = steps + rounds * rollout, watch.seconds()
        with watch.left_out():
            mean = float(evaluate(state, jax.random.key(steps)))
        solved = mean >= asked.task.goal
    answer(solved, seconds, steps, mean)


if __name__ == "__main__":
    solve(attempt(), Stopwatch())
