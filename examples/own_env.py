"""An environment of your own in JAX, trained and rendered: keep a room at 20 degrees.

python examples/own_env.py [FOLDER]
"""

import sys
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import tsallax
from tsallax.api import Result
from tsallax.envs import Environment, Outcome

WANTED, POWER, LEAK = 20.0, 1.5, 0.1
SETTINGS = {"gamma": 0.9, "steps": 20_000, "target_period": 500, "hidden": (64, 64)}


class State(NamedTuple):
    inside: jax.Array  # degrees
    outside: jax.Array
    t: jax.Array


def thermostat(limit: int = 100) -> Environment:
    """Cool, wait or heat while the weather drifts; the reward is 1 within one degree."""

    def reset(key):
        return State(*jax.random.uniform(key, (2,), minval=5.0, maxval=35.0), jnp.int32(0))

    def step(state, action, key):
        flow = LEAK * (state.outside - state.inside) + POWER * (action - 1)
        outside = jnp.clip(state.outside + 0.5 * jax.random.normal(key), 5.0, 35.0)
        after = State(state.inside + flow, outside, state.t + 1)
        reward = (jnp.abs(after.inside - WANTED) < 1).astype(jnp.float32)
        return after, Outcome(reward, jnp.asarray(False), after.t >= limit)

    def observe(state):
        return (jnp.stack([state.inside, state.outside]) - WANTED) / 15

    def render(state):  # a thermometer, for `tsallax play`
        lit = jnp.arange(40)[::-1, None, None] < jnp.full((1, 8, 1), state.inside)
        return jnp.where(lit, jnp.array([[[200, 60, 40]]]), 230).astype(jnp.uint8)

    return Environment("Thermostat", ("cool", "wait", "heat"), reset, step, observe, render, limit)


def train(folder: Path, **fields: Any) -> Result:
    result = tsallax.train(thermostat(), preset="paper", q=2, **(SETTINGS | fields))
    result.plot(folder / "thermostat.png")
    return result


if __name__ == "__main__":
    folder = Path(*sys.argv[1:2])
    print(f"return {train(folder).best()[1]:.0f} of 100; see {folder / 'thermostat.png'}")
