"""Pendulum-v1: swing a pendulum up and hold it there, with a motor that is too weak to lift it.

Constants, cost and limits are those of Gymnasium's `Pendulum-v1` (Farama Foundation, MIT licence).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt8

from tsallax.envs import draw
from tsallax.types import Box, Environment, Outcome

GRAVITY = 10.0
MASS = 1.0
LENGTH = 1.0
TIME_STEP = 0.05
MAX_SPEED = 8.0
MAX_TORQUE = 2.0
START = (jnp.pi, 1.0)  # initial angle and velocity are uniform in plus or minus these


class State(NamedTuple):
    y: Float[Array, "2"]  # angle from upright, and its velocity
    torque: Float[Array, ""]  # the last one, for rendering
    t: Int[Array, ""]


def pendulum(time_limit: int | None = 200) -> Environment:
    def step(state: State, action: Float[Array, "1"], key: PRNGKeyArray) -> tuple[State, Outcome]:
        angle, velocity = state.y
        torque = jnp.clip(action[0], -MAX_TORQUE, MAX_TORQUE)
        cost = wrapped(angle) ** 2 + 0.1 * velocity**2 + 0.001 * torque**2
        fall = 3 * GRAVITY / (2 * LENGTH) * jnp.sin(angle)
        velocity += (fall + 3 / (MASS * LENGTH**2) * torque) * TIME_STEP
        velocity = jnp.clip(velocity, -MAX_SPEED, MAX_SPEED)
        t = state.t + 1
        truncated = jnp.asarray(time_limit is not None and t >= time_limit)
        after = State(jnp.stack([angle + velocity * TIME_STEP, velocity]), torque, t)
        return after, Outcome(-cost, jnp.asarray(False), truncated)

    bounds = Box((-MAX_TORQUE,), (MAX_TORQUE,))
    names = ("torque",)
    return Environment("Pendulum-v1", names, reset, step, observe, render, time_limit, bounds)


def wrapped(angle: Float[Array, ""]) -> Float[Array, ""]:
    """The same angle in [-pi, pi)."""
    return (angle + jnp.pi) % (2 * jnp.pi) - jnp.pi


def reset(key: PRNGKeyArray) -> State:
    y = jax.random.uniform(key, (2,), minval=-1) * jnp.array(START, jnp.float32)
    return State(y, jnp.zeros(()), jnp.int32(0))


def observe(state: State) -> Float[Array, "3"]:
    angle, velocity = state.y
    return jnp.stack([jnp.cos(angle), jnp.sin(angle), velocity])


def render(state: State) -> UInt8[Array, "240 240 3"]:
    angle = state.y[0]
    pivot = draw.point(0.0, 0.0)
    bob = LENGTH * draw.point(-jnp.sin(angle), jnp.cos(angle))  # same direction as in Gymnasium
    push = 0.35 * state.torque / MAX_TORQUE
    end = bob + push * draw.point(-jnp.cos(angle), -jnp.sin(angle))

    def scene(p: draw.Point) -> list[draw.Layer]:
        return [
            (jnp.abs(draw.disc(p, pivot, LENGTH)) - 0.006, draw.GREY),
            (draw.segment(p, pivot, bob, 0.05), draw.BLUE),
            (draw.disc(p, bob, 0.11), draw.BLUE),
            (draw.segment(p, bob, end + 1e-4, 0.03), draw.ORANGE),
            (draw.disc(p, pivot, 0.05), draw.INK),
        ]

    return draw.picture(scene, 240, 240, pixel=2.8 / 240)
