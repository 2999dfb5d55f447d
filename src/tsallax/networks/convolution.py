"""A convolution whose gradients are also fast in the body of a loop.

JAX expresses the gradients of a convolution as convolutions with permuted axes. XLA reorders these
axes for a CPU, but not in the body of a loop: there an update of the Nature network takes 7 times
as long (docs/performance.md). So the derivative below permutes its arrays such that its transpose,
the gradient, has its axes in order.
"""

from functools import partial

import jax
from jax import lax
from jaxtyping import Array, Float


@partial(jax.custom_jvp, nondiff_argnums=(2,))
def convolve(
    image: Float[Array, "H W C"], kernel: Float[Array, "K K C O"], stride: int
) -> Float[Array, "h w O"]:
    """A convolution without padding. `vmap` over images is one convolution of the batch."""
    return _valid(image[None], kernel, stride, ("NHWC", "HWIO", "NHWC"))[0]


@convolve.defjvp
def _(stride, primals, tangents):
    (image, kernel), (d_image, d_kernel) = primals, tangents
    by_image = _valid(d_image[None], kernel.transpose(0, 1, 3, 2), stride, ("NHWC", "HWOI", "NHWC"))
    by_kernel = _valid(
        image[None].transpose(3, 1, 2, 0),
        d_kernel.transpose(2, 0, 1, 3),
        stride,
        ("CHWN", "IHWO", "HWNC"),
    )
    return convolve(image, kernel, stride), (by_image + by_kernel.transpose(2, 0, 1, 3))[0]


def _valid(images, kernel, stride, axes):
    return lax.conv_general_dilated(
        images, kernel, (stride, stride), "VALID", dimension_numbers=axes
    )
