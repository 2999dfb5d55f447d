"""DQN of rejax, on gymnax's environments."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training.train_state import TrainState
from rejax import DQN
from rejax.networks import DiscreteQNetwork, EpsilonGreedyPolicy
from turns import Turns, arguments
from works import CONV, RMSPROP


class Network(nn.Module):
    """MinAtar's network: a 3x3 convolution and one hidden layer."""

    action_dim: int
    width: int

    @nn.compact
    def __call__(self, images):
        x = nn.relu(nn.Conv(CONV, (3, 3), padding="VALID")(images))
        x = nn.relu(nn.Dense(self.width)(x.reshape(x.shape[0], -1)))
        return nn.Dense(self.action_dim)(x)

    def take(self, images, action):
        return jax.vmap(lambda Q, a: Q[a])(self(images), action)


work, _ = arguments()
turns = Turns(work.batch, work.train_period, settle=work.target_period)
images = work.env.startswith("MinAtar/")
name = f"{work.env.removeprefix('MinAtar/')}-MinAtar" if images else work.env
algorithm = DQN.create(
    env=name,
    env_params={"use_minimal_action_set": False} if images else {},
    num_envs=work.train_period,  # steps per update, as all environments step at once
    total_timesteps=work.target_period,
    eval_freq=work.target_period,
    skip_initial_evaluation=True,
    buffer_size=work.buffer,
    fill_buffer=work.batch,
    batch_size=work.batch,
    learning_rate=work.learning_rate,
    gamma=work.gamma,
    target_update_freq=work.target_period,
    polyak=0.0,
    ddqn=False,
    eps_start=work.epsilon,
    eps_end=work.epsilon,
)
if images:
    agent = EpsilonGreedyPolicy(Network)(action_dim=work.actions, width=work.hidden[0])
else:
    agent = EpsilonGreedyPolicy(DiscreteQNetwork)(
        hidden_layer_sizes=work.hidden, activation=nn.relu, action_dim=work.actions
    )
algorithm = algorithm.replace(agent=agent, eval_callback=lambda *_: jnp.zeros(()))
state = jax.jit(algorithm.init_state)(jax.random.key(0))
if work.optimiser == "rmsprop":
    rmsprop = optax.rmsprop(work.learning_rate, **RMSPROP, eps_in_sqrt=False)
    own = TrainState.create(apply_fn=(), params=state.q_ts.params, tx=rmsprop)
    state = state.replace(q_ts=own)
state = jax.tree.map(jnp.copy, state)  # no two leaves may share a buffer, as all are donated
train = jax.jit(lambda state: algorithm.train(train_state=state)[0], donate_argnums=0)
while True:
    state = jax.block_until_ready(train(state))
    turns.done(work.target_period)
