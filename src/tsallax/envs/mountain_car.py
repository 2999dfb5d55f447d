"""MountainCar-v0: drive a weak car out of a valley by swinging back and forth.

Moore (1990), "Efficient memory-based learning for robot control". Constants, reward and limits are
those of Gymnasium's `MountainCar-v0` (Farama Foundation, MIT licence).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt8

from tsallax.envs import draw
from tsallax.types import Environment, Outcome

MIN_X, MAX_X = -1.2, 0.6
MAX_SPEED = 0.07
GOAL = 0.5
FORCE = 0.001
GRAVITY = 0.0025
START = (-0.6, -0.4)  # the first position is uniform between these, at rest


class State(NamedTuple):
    y: Float[Array, "2"]  # position and velocity
    t: Int[Array, ""]


def mountain_car(time_limit: int | None = 200) -> Environment:
    def step(state: State, action: Int[Array, ""], key: PRNGKeyArray) -> tuple[State, Outcome]:
        x, velocity = state.y
        velocity = velocity + (action - 1) * FORCE - GRAVITY * jnp.cos(3 * x)
        velocity = jnp.clip(velocity, -MAX_SPEED, MAX_SPEED)
        x = jnp.clip(x + velocity, MIN_X, MAX_X)
        velocity = jnp.where((x <= MIN_X) & (velocity < 0), 0, velocity)  # the wall on the left
        t = state.t + 1
        terminated = (x >= GOAL) & (velocity >= 0)
        truncated = jnp.asarray(time_limit is not None and t >= time_limit)
        return State(jnp.stack([x, velocity]), t), Outcome(jnp.float32(-1), terminated, truncated)

    names = ("left", "nothing", "right")
    return Environment("MountainCar-v0", names, reset, step, observe, render, time_limit)


def reset(key: PRNGKeyArray) -> State:
    x = jax.random.uniform(key, (), jnp.float32, *START)
    return State(jnp.stack([x, jnp.zeros_like(x)]), jnp.int32(0))


def observe(state: State) -> Float[Array, "2"]:
    return state.y


def height(x: Float[Array, ""] | float) -> Float[Array, ""]:
    return jnp.sin(3 * x) * 0.45


def render(state: State) -> UInt8[Array, "200 320 3"]:
    middle = draw.point((MIN_X + MAX_X) / 2, 0.12)

    def on_hill(x: Float[Array, ""] | float, above: float) -> draw.Point:
        return draw.point(x, height(x) + above) - middle

    car, flag, top = on_hill(state.y[0], 0.05), on_hill(GOAL, 0.0), on_hill(GOAL, 0.2)

    def scene(p: draw.Point) -> list[draw.Layer]:
        x = p[0] + middle[0]
        slope = 1.35 * jnp.cos(3 * x)
        above = (p[1] + middle[1] - height(x)) / jnp.sqrt(1 + slope**2)  # to first order
        cloth = draw.rectangle(p, top + draw.point(0.07, -0.04), draw.point(0.07, 0.04))
        return [
            (above, draw.MINT),
            (jnp.abs(above) - 0.006, draw.GREY),
            (draw.segment(p, flag, top, 0.006), draw.INK),
            (cloth, draw.GREEN),
            (draw.disc(p, car, 0.05), draw.ORANGE),
            (draw.disc(p, car, 0.018), draw.PAPER),
        ]

    return draw.picture(scene, 200, 320, pixel=1.9 / 320)
