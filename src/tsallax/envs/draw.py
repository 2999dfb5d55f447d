"""Pictures from signed distance functions of one point, so that drawing can be jitted and vmapped.

The distance functions are the well-known ones (I. Quilez, "2D distance functions"); they are
negative inside the shape and in world units. The origin of the world is the middle of the picture,
and y points upwards.
"""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, UInt8

Point = Float[Array, "2"]
Distance = Float[Array, ""]
Colour = tuple[int, int, int]
Layer = tuple[Distance, Colour]

PAPER: Colour = (250, 250, 247)
GREY: Colour = (184, 188, 194)
INK: Colour = (45, 55, 72)
BLUE: Colour = (58, 110, 165)
ORANGE: Colour = (224, 138, 60)
MINT: Colour = (228, 240, 231)
GREEN: Colour = (72, 150, 96)


def point(x: float | Float[Array, ""], y: float | Float[Array, ""]) -> Point:
    return jnp.stack([jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32)])


def disc(p: Point, centre: Point, radius: float) -> Distance:
    return length(p - centre) - radius


def segment(p: Point, a: Point, b: Point, radius: float) -> Distance:
    """A thick line from a to b with round ends; a and b must differ."""
    along = jnp.clip(jnp.dot(p - a, b - a) / jnp.dot(b - a, b - a), 0, 1)
    return length(p - a - along * (b - a)) - radius


def rectangle(p: Point, centre: Point, half_size: Point, radius: float = 0.0) -> Distance:
    """An axis-parallel rectangle with corners rounded by `radius`."""
    outside = jnp.abs(p - centre) - half_size + radius
    return length(jnp.maximum(outside, 0)) + jnp.minimum(jnp.max(outside), 0) - radius


def length(p: Point) -> Distance:
    return jnp.sqrt(jnp.sum(p**2))


def blend(layers: Sequence[Layer], pixel: float) -> Float[Array, "3"]:
    """Blend the layers, the first at the bottom, with edges antialiased over one pixel."""
    colour = jnp.array(PAPER, jnp.float32)
    for distance, paint in layers:
        cover = jnp.clip(0.5 - distance / pixel, 0, 1)
        colour += cover * (jnp.array(paint, jnp.float32) - colour)
    return colour


def picture(
    scene: Callable[[Point], Sequence[Layer]], height: int, width: int, pixel: float
) -> UInt8[Array, "{height} {width} 3"]:
    """The colours of `scene` at the pixels' centres; a pixel is `pixel` world units wide."""
    x = (jnp.arange(width, dtype=jnp.float32) - (width - 1) / 2) * pixel
    y = ((height - 1) / 2 - jnp.arange(height, dtype=jnp.float32)) * pixel

    def shade(y: Float[Array, ""], x: Float[Array, ""]) -> Float[Array, "3"]:
        return blend(scene(point(x, y)), pixel)

    image = jax.vmap(jax.vmap(shade, (None, 0)), (0, None))(y, x)
    return jnp.round(image).astype(jnp.uint8)
