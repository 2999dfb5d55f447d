"""gymnax's MinAtar Breakout with the original rules: six actions, sticky with probability 0.1."""

from typing import Any

import gymnax
import jax
import jax.numpy as jnp

REPEATED = 0.1


class Sticky:
    """Repeats the last action, which is part of the state, with a given probability."""

    def __init__(self, env: Any):
        self._env = env

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # `copy` looks these up before there is an environment
            raise AttributeError(name)
        return getattr(self._env, name)

    def reset(self, key: Any, params: Any = None) -> tuple[Any, Any]:
        obs, state = self._env.reset(key, params)
        return obs, (state, jnp.int32(0))

    def step(self, key: Any, state: Any, action: Any, params: Any = None) -> tuple[Any, ...]:
        inner, before = state
        key, own = jax.random.split(key)
        repeat = jax.random.bernoulli(own, REPEATED)
        action = jnp.where(repeat, before, action).astype(jnp.int32)
        obs, inner, reward, done, info = self._env.step(key, inner, action, params)
        return obs, (inner, jnp.where(done, 0, action)), reward, done, info


def breakout() -> tuple[Sticky, Any]:
    """The environment and its parameters."""
    env, params = gymnax.make("Breakout-MinAtar", use_minimal_action_set=False)
    return Sticky(env), params
