"""The quantile Huber loss against sb3-contrib's numbers (golden/sb3.npz)."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tsallax.operators import quantile_huber

with np.load(Path(__file__).parents[1] / "golden" / "sb3.npz", allow_pickle=False) as file:
    GOLDEN = dict(file)


@pytest.mark.parametrize("case", ["few", "uneven", "usual"])
def test_quantile_huber(case):
    theta, target = (GOLDEN[f"{case}/{name}"].astype(np.float32) for name in ("theta", "target"))

    @jax.value_and_grad
    def batch_loss(theta):
        return jnp.mean(jax.vmap(quantile_huber)(theta, target))

    loss, gradient = batch_loss(jnp.asarray(theta))
    np.testing.assert_allclose(loss, GOLDEN[f"{case}/loss"], rtol=1e-5)
    np.testing.assert_allclose(gradient, GOLDEN[f"{case}/gradient"], rtol=1e-4, atol=1e-6)
