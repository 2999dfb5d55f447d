"""CartPole-v1: push a cart left or right to keep its pole upright.

Barto, Sutton and Anderson (1983), "Neuronlike adaptive elements that can solve difficult learning
control problems", without the friction; the equations of motion are Florian (2007), "Correct
equations for the dynamics of the cart-pole system". Constants, Euler's rule, reward and limits are
those of Gymnasium's `CartPole-v1` (Farama Foundation, MIT licence).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt8

from tsallax.envs import draw
from tsallax.types import Environment, Outcome

GRAVITY = 9.8
CART_MASS = 1.0
POLE_MASS = 0.1
HALF_POLE = 0.5  # from the axle to the pole's centre of mass
FORCE = 10.0
DT = 0.02
MAX_X = 2.4
MAX_ANGLE = np.deg2rad(12).item()
START = 0.05  # every component of the initial state is uniform in [-START, START)


class State(NamedTuple):
    y: Float[Array, "4"]  # cart position and velocity, pole angle and angular velocity
    t: Int[Array, ""]


def cartpole(time_limit: int | None = 500) -> Environment:
    def step(state: State, action: Int[Array, ""], key: PRNGKeyArray) -> tuple[State, Outcome]:
        y = state.y + DT * derivative(state.y, jnp.where(action == 1, FORCE, -FORCE))
        t = state.t + 1
        terminated = (jnp.abs(y[0]) > MAX_X) | (jnp.abs(y[2]) > MAX_ANGLE)
        truncated = jnp.asarray(time_limit is not None and t >= time_limit)
        return State(y, t), Outcome(jnp.float32(1), terminated, truncated)

    return Environment("CartPole-v1", ("left", "right"), reset, step, observe, render, time_limit)


def derivative(y: Float[Array, "4"], force: Float[Array, ""]) -> Float[Array, "4"]:
    """Florian's equations without friction, in the order of the state."""
    _, velocity, angle, spin = y
    mass, sin, cos = CART_MASS + POLE_MASS, jnp.sin(angle), jnp.cos(angle)
    push = (force + POLE_MASS * HALF_POLE * spin**2 * sin) / mass
    d_spin = (GRAVITY * sin - cos * push) / (HALF_POLE * (4 / 3 - POLE_MASS * cos**2 / mass))
    d_velocity = push - POLE_MASS * HALF_POLE * d_spin * cos / mass
    return jnp.stack([velocity, d_velocity, spin, d_spin])


def reset(key: PRNGKeyArray) -> State:
    return State(jax.random.uniform(key, (4,), jnp.float32, -START, START), jnp.int32(0))


def observe(state: State) -> Float[Array, "4"]:
    return state.y


def render(state: State) -> UInt8[Array, "160 320 3"]:
    x, _, angle, _ = state.y
    track = -0.75
    axle = draw.point(x, track + 0.34)
    tip = axle + 2 * HALF_POLE * draw.point(jnp.sin(angle), jnp.cos(angle))

    def scene(p: draw.Point) -> list[draw.Layer]:
        # the track's two ends, and the two wheels, are mirror images of one shape
        end = draw.point(jnp.abs(p[0]) - MAX_X, p[1] - track)
        wheel = draw.point(jnp.abs(p[0] - x) - 0.2, p[1] - track - 0.1)
        hub = draw.point(0.0, 0.0)
        body = draw.rectangle(p, axle - draw.point(0.0, 0.1), draw.point(0.36, 0.13), 0.05)
        return [
            (jnp.abs(p[1] - track) - 0.014, draw.GREY),
            (draw.rectangle(end, hub, draw.point(0.012, 0.13)), draw.GREY),
            (body, draw.INK),
            (draw.disc(wheel, hub, 0.085), draw.INK),
            (draw.disc(wheel, hub, 0.035), draw.PAPER),
            (draw.segment(p, axle, tip, 0.055), draw.ORANGE),
            (draw.disc(p, axle, 0.03), draw.INK),
        ]

    return draw.picture(scene, 160, 320, pixel=5.6 / 320)
