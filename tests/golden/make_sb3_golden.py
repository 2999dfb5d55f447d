"""Writes sb3.npz: sb3-contrib's quantile Huber loss, and its gradient, on random quantiles.

Run with a Python that has torch 2.13.0 and sb3-contrib 2.9.2:
`python tests/golden/make_sb3_golden.py`. It is not needed for the tests, which read the file only.
Computed in float64.
"""

from pathlib import Path

import numpy as np
import torch
from sb3_contrib.common.utils import quantile_huber_loss

BATCH, SIZES = 4, {"few": (3, 3), "uneven": (5, 2), "usual": (200, 200)}


def main() -> None:
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    arrays = {}
    for name, (n, m) in SIZES.items():
        theta = (2 * torch.randn(BATCH, n)).requires_grad_()
        target = 2 * torch.randn(BATCH, m)
        loss = quantile_huber_loss(theta, target, sum_over_quantiles=True)
        loss.backward()
        arrays |= {
            f"{name}/theta": theta.detach().numpy(),
            f"{name}/target": target.numpy(),
            f"{name}/loss": loss.detach().numpy(),
            f"{name}/gradient": theta.grad.numpy(),
        }
    np.savez_compressed(Path(__file__).parent / "sb3.npz", **arrays)


if __name__ == "__main__":
    main()
