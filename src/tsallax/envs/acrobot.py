"""Acrobot-v1: swing a two-link pendulum above a line, with a motor at the elbow only.

Sutton (1996), "Generalization in reinforcement learning: successful examples using sparse coarse
coding"; the dynamics are those of Sutton and Barto (1998), "Reinforcement Learning", section 11.3
(the 'book' ones, with the term in the first link's velocity that the paper lacks). Constants, one
Runge-Kutta step of 0.2 s (the book uses four of 0.05 s), reward and limits are those of
Gymnasium's `Acrobot-v1` (Farama Foundation, MIT licence), which is based on RLPy's.
"""

from math import pi
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt8

from tsallax.envs import draw
from tsallax.types import Environment, Outcome

GRAVITY = 9.8
MASS, LENGTH, CENTRE, INERTIA = 1.0, 1.0, 0.5, 1.0  # of either link
TORQUE = 1.0
MAX_SPIN_1, MAX_SPIN_2 = 4 * pi, 9 * pi
DT = 0.2
GOAL = LENGTH  # the tip's height above the pivot
START = 0.1  # every number of the first state is uniform in [-START, START)


class State(NamedTuple):
    y: Float[Array, "4"]  # angle of link 1 from hanging, of link 2 from link 1; their velocities
    t: Int[Array, ""]


def acrobot(time_limit: int | None = 500) -> Environment:
    def step(state: State, action: Int[Array, ""], key: PRNGKeyArray) -> tuple[State, Outcome]:
        y, t = bound(runge_kutta(state.y, TORQUE * (action - 1.0))), state.t + 1
        terminated = -LENGTH * (jnp.cos(y[0]) + jnp.cos(y[0] + y[1])) > GOAL
        truncated = jnp.asarray(time_limit is not None and t >= time_limit)
        return State(y, t), Outcome(terminated.astype(jnp.float32) - 1, terminated, truncated)

    names = ("torque -1", "torque 0", "torque +1")
    return Environment("Acrobot-v1", names, reset, step, observe, render, time_limit)


def derivative(y: Float[Array, "4"], torque: Float[Array, ""]) -> Float[Array, "4"]:
    """The book's figure 11.5 in its notation; its cos(x - pi/2) is sin x."""
    theta1, theta2, spin1, spin2 = y
    h = MASS * LENGTH * CENTRE
    d1 = MASS * (LENGTH**2 + 2 * CENTRE**2) + 2 * h * jnp.cos(theta2) + 2 * INERTIA
    d2 = MASS * CENTRE**2 + h * jnp.cos(theta2) + INERTIA
    phi2 = MASS * CENTRE * GRAVITY * jnp.sin(theta1 + theta2)
    phi1 = -h * (spin2**2 + 2 * spin1 * spin2) * jnp.sin(theta2) + phi2
    phi1 += MASS * (CENTRE + LENGTH) * GRAVITY * jnp.sin(theta1)
    d_spin2 = torque + d2 / d1 * phi1 - h * spin1**2 * jnp.sin(theta2) - phi2
    d_spin2 /= MASS * CENTRE**2 + INERTIA - d2**2 / d1
    return jnp.stack([spin1, spin2, -(d2 * d_spin2 + phi1) / d1, d_spin2])


def runge_kutta(y: Float[Array, "4"], torque: Float[Array, ""]) -> Float[Array, "4"]:
    """One Runge-Kutta step of order four."""
    k1 = derivative(y, torque)
    k2 = derivative(y + DT / 2 * k1, torque)
    k3 = derivative(y + DT / 2 * k2, torque)
    k4 = derivative(y + DT * k3, torque)
    return y + DT / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def bound(y: Float[Array, "4"]) -> Float[Array, "4"]:
    """Wraps angles into [-pi, pi] and clips velocities."""
    # round instead of mod leaves an angle inside the range exactly unchanged
    angles = y[:2] - 2 * pi * jnp.round(y[:2] / (2 * pi))
    limit = jnp.array([MAX_SPIN_1, MAX_SPIN_2], y.dtype)
    return jnp.concatenate([angles, jnp.clip(y[2:], -limit, limit)])


def reset(key: PRNGKeyArray) -> State:
    return State(jax.random.uniform(key, (4,), jnp.float32, -START, START), jnp.int32(0))


def observe(state: State) -> Float[Array, "6"]:
    theta1, theta2, spin1, spin2 = state.y
    angles = [jnp.cos(theta1), jnp.sin(theta1), jnp.cos(theta2), jnp.sin(theta2)]
    return jnp.stack([*angles, spin1, spin2])


def render(state: State) -> UInt8[Array, "240 240 3"]:
    theta1, theta2, _, _ = state.y
    pivot = draw.point(0.0, 0.0)
    elbow = pivot + LENGTH * draw.point(jnp.sin(theta1), -jnp.cos(theta1))
    tip = elbow + LENGTH * draw.point(jnp.sin(theta1 + theta2), -jnp.cos(theta1 + theta2))

    def scene(p: draw.Point) -> list[draw.Layer]:
        return [
            (GOAL - p[1], draw.MINT),
            (jnp.abs(p[1] - GOAL) - 0.014, draw.GREEN),
            (draw.segment(p, pivot, elbow, 0.085), draw.INK),
            (draw.segment(p, elbow, tip, 0.085), draw.BLUE),
            (draw.disc(p, pivot, 0.04), draw.PAPER),
            (draw.disc(p, elbow, 0.04), draw.PAPER),
            (draw.disc(p, tip, 0.11), draw.ORANGE),
        ]

    return draw.picture(scene, 240, 240, pixel=4.6 / 240)
