"""Densities of continuous actions: q-Gaussians, squashed to (-1, 1) in each dimension.

An action is `a = tanh(x)` with `x = centre + scale z`, where z is a standard q-Gaussian, of mean 0
and variance 1:

    f(z) = C [1 - c z^2]+^(1/(q-1)),   c = (q-1)/(3q-1)

This is the policy that maximises `<pi,Q> + alpha H_q(pi)` if Q is quadratic. The limit q = 1 is the
Gaussian; for q > 1 the support is bounded, `|z| <= sqrt((3q-1)/(q-1))`; q = 2 is a parabola. (This
is the convention of `tsallax.policies.q_exp`; others write `2 - q` for this q.)

Every function is elementwise, its q may be traced, and q = 1 needs no special treatment. Draws are
made from uniform numbers by a generalised Box-Muller method, so that z depends neither on `centre`
nor on `scale`: pathwise gradients have no boundary term.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from tsallax.policies.closed import q_log, q_log_of_exp
from tsallax.types import Number

EDGE = 1 - 1e-6  # actions are clipped to this before arctanh


def standard_draw(u: Float[Array, "*n"], v: Float[Array, "*n"], q: Number) -> Float[Array, "*n"]:
    """`sqrt(-2 (3q-1)/(q+1) ln_(1+t) u) cos(2 pi v)`, `t = 2 (q-1)/(q+1)`, of uniform u and v.

    At q = 1 it is Box and Muller's. In general the density `(1 - r^2)^(m - 1/2)` in the plane,
    m = 1/(q-1), has the marginal `(1 - z^2)^m`, and its radius inverts in closed form.
    """
    radius = -2 * (3 * q - 1) / (q + 1) * q_log(1 - u, 1 + 2 * (q - 1) / (q + 1))  # u < 1
    return jnp.sqrt(jnp.maximum(radius, 0)) * jnp.cos(2 * math.pi * v)


def standard_log_density(z: Float[Array, "*n"], q: Number) -> Float[Array, "*n"]:
    """`ln f(z)`; -inf outside of the support."""
    e = jnp.asarray(q - 1, z.dtype)
    c = e / (3 * e + 2)
    inside = c * z**2 < 1
    # q_log(exp(x), 1) = x: the limit of log1p(-c z^2)/(q-1) at q = 1 is -z^2/2.
    power = jnp.log1p(-jnp.where(inside, c * z**2, 0)) / jnp.where(e == 0, 1, e)
    bulk = jnp.where(e == 0, -(z**2) / 2, power)
    return jnp.where(inside, log_normaliser(q) + bulk, -jnp.inf)


def log_normaliser(q: Number) -> Float[Array, ""]:
    """`ln C`, where `C sqrt(pi (2m+3)) = G(m + 3/2)/G(m + 1)` with the gamma function, m = 1/(q-1).

    The ratio is shifted by four and then expanded in 1/m: accurate to 1e-7 for every q >= 1,
    without the difference of two large logarithms that `lgamma` would have near q = 1.
    """
    q = jnp.asarray(q)
    e = q - 1
    y = e / (q + 4 * e)  # 1/(m + 5)
    series = 1 - y / 8 + y**2 / 128 + 5 * y**3 / 1024 - 21 * y**4 / 32768
    shifts = [(q + i * e) / (q + (i + 0.5) * e) for i in range(4)]
    root = (q + 4 * e) / (math.pi * (3 * q - 1))  # (m + 5)/(pi (2m + 3))
    return jnp.log(root) / 2 + jnp.log(series * math.prod(shifts))


def log_slope(x: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """`ln(1 - tanh(x)^2)`, the log-derivative of the squash; also exact where tanh rounds to 1."""
    return 2 * (math.log(2) - x - jax.nn.softplus(-2 * x))


def squashed(
    centre: Float[Array, "*n"], scale: Float[Array, "*n"], z: Float[Array, "*n"], q: Number
) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
    """The action from a standard draw z, and its log-density."""
    x = centre + scale * z
    log_density = standard_log_density(z, q) - jnp.log(scale) - log_slope(x)
    return jnp.tanh(x), log_density


def squashed_log_density(
    a: Float[Array, "*n"], centre: Float[Array, "*n"], scale: Float[Array, "*n"], q: Number
) -> Float[Array, "*n"]:
    """The log-density of a given action; -inf outside of the support."""
    x = jnp.arctanh(jnp.clip(a, -EDGE, EDGE))
    return standard_log_density((x - centre) / scale, q) - jnp.log(scale) - log_slope(x)


def squashed_support(
    centre: Float[Array, "*n"], scale: Float[Array, "*n"], q: Number
) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
    """The bounds of the support; at q = 1 they are those of the action space, -1 and 1."""
    e = jnp.asarray(q - 1, centre.dtype)
    reach = scale * jnp.sqrt(jnp.where(e > 0, (3 * e + 2) / jnp.where(e > 0, e, 1), jnp.inf))
    return jnp.tanh(centre - reach), jnp.tanh(centre + reach)


# Entropies before the squash --------------------------------------------------------------------


def gaussian_entropy(scale: Number, q: Number, k: Number) -> Float[Array, "..."]:
    """`H_q = k/(q-1) (1 - (2 pi s^2)^((1-q)/2)/sqrt(q))` of a Gaussian; Shannon's at q = 1."""
    log_power = -jnp.log(2 * math.pi * jnp.asarray(scale) ** 2) / 2  # of 1/sqrt(2 pi s^2)
    e = jnp.asarray(q - 1, log_power.dtype)
    # E p^(q-1) = exp((q-1) x), where x includes the root of q, whose limit is -1/2.
    root = jnp.where(e == 0, 0.5, jnp.log1p(e) / (2 * jnp.where(e == 0, 1, e)))
    return -jnp.asarray(k) * q_log_of_exp(log_power - root, q)


def q_gaussian_entropy(scale: Number, q: Number, k: Number) -> Float[Array, "..."]:
    """`H_q = k/(q-1) (1 - (C/s)^(q-1) 2q/(3q-1))` of a q-Gaussian of the same q."""
    scale = jnp.asarray(scale)
    e = jnp.asarray(q - 1, scale.dtype)
    share = -jnp.log1p(e / (2 * e + 2)) / jnp.where(e == 0, 1, e)  # of (2q/(3q-1))^(1/(q-1))
    log_power = log_normaliser(q) - jnp.log(scale) + jnp.where(e == 0, -0.5, share)
    return -jnp.asarray(k) * q_log_of_exp(log_power, q)


def width_of_entropy(shannon: Number) -> Number:
    """The standard deviation of the Gaussian with this Shannon entropy: .089 for SAC's -1."""
    return jnp.exp(jnp.asarray(shannon) - 0.5) / math.sqrt(2 * math.pi)
