"""The density of a continuous action as a small image."""

import numpy as np
from jaxtyping import Float, UInt8
from PIL import ImageColor

from tsallax.report.curves import PALETTE


def strip(
    density: Float[np.ndarray, "points"], action: float, height: int, width: int, ground: str
) -> UInt8[np.ndarray, "{height} {width} 3"]:
    """The density over [-1, 1], scaled to the image's height, with the action as a line."""
    image = np.full((height, width, 3), ImageColor.getrgb(ground), np.uint8)
    shares = density[np.arange(width) * len(density) // width] / max(float(density.max()), 1e-30)
    filled = np.arange(height, 0, -1)[:, None] <= np.ceil(height * shares)[None]
    image[filled] = ImageColor.getrgb(PALETTE[0])
    at = round((action + 1) / 2 * (width - 2))
    image[:, at : at + 2] = ImageColor.getrgb(PALETTE[1])
    return image
