"""The matrix products of a plain network, in an order that XLA computes faster on a CPU."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def hidden_again(
    weight: Float[Array, "inputs outputs"], bias: Float[Array, "outputs"], x: Float[Array, "inputs"]
) -> Float[Array, "outputs"]:
    """`relu(x W + b)`, written such that `vmap` puts the batch on the last axis: see `product`."""
    rows = jnp.concatenate([weight, bias[None]])
    return jax.nn.relu(rows.T @ jnp.append(x, 1))


@jax.custom_jvp
def product(x, weight, again):
    """`x W`; `again` is x again, whose batch is the transpose of that of x.

    The gradient of W is x' g. On a CPU XLA takes 1.5 times as long for a product whose left factor
    must be transposed, and computing x a second time costs less, as its layer's input is narrow.
    """
    return x @ weight


@jax.custom_jvp
def to_one(x, weight):
    """`x w` of a layer with a single output.

    The gradient of w is the sum of g x over a batch. XLA computes a product column by column, and
    recomputes for each weight everything that leads to g; a sum is computed row by row.
    """
    return x @ weight


@to_one.defjvp
def _to_one_jvp(primals, tangents):
    x, weight = primals
    dx, dweight = tangents
    return x @ weight, dx @ weight + jnp.sum(x[None] * dweight.T, -1)


@product.defjvp
def _product_jvp(primals, tangents):
    x, weight, again = primals
    dx, dweight, _ = tangents
    return x @ weight, dx @ weight + jnp.tensordot(again, dweight, 1)
