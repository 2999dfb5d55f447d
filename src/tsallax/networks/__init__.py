"""Q-networks of the paper's tables: plain `(init, apply)` pairs on one observation.

A user's own pair is accepted wherever a `Network` is: `apply(params, observation)` returns action
values `(A,)`, or quantiles `(A, N)`.
"""

from tsallax.networks.convolutional import minatar_conv, nature
from tsallax.networks.dense import (
    Dense,
    Network,
    Params,
    affine,
    dense,
    make_network,
    mlp,
    output_shape,
)

__all__ = [
    "Dense", "Network", "Params", "affine", "dense", "make_network", "minatar_conv", "mlp",
    "nature", "output_shape",
]  # fmt: skip
