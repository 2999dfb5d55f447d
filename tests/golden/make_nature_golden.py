"""Writes nature.npz: outputs, loss, gradient and one update of a small Nature network by torch.

Run with a Python that has torch 2.13.0 and numpy: `python tests/golden/make_nature_golden.py`. As
in make_torch_golden.py, arrays keep torch's names and layouts and torch computes in float64. The
file is kept small: weights are bytes times a scale, and of long gradients and updated weights it
holds every 17th number.
"""

from pathlib import Path

import numpy as np
import torch
from torch import nn

# Rows and columns differ, and no window reaches the last ones.
HEIGHT, WIDTH, PLANES, ACTIONS, ATOMS, BATCH = 45, 58, 2, 3, 5, 4
GAMMA, LEARNING_RATE, KEPT = 0.99, 1e-3, 17


def nature():
    return nn.Sequential(
        nn.Conv2d(PLANES, 32, 8, 4),
        nn.ReLU(),
        nn.Conv2d(32, 64, 4, 2),
        nn.ReLU(),
        nn.Conv2d(64, 64, 3, 1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(2 * 3 * 64, 16),
        nn.ReLU(),
        nn.Linear(16, ACTIONS * ATOMS),
    ).double()


def rounded(network):
    """The parameters as bytes; the network keeps what the bytes say."""
    out = {}
    with torch.no_grad():
        for name, value in network.named_parameters():
            scale = value.abs().max().item() / 127
            whole = torch.round(value / scale)
            value.copy_(whole * scale)
            out[f"init/{name}"] = whole.numpy().astype(np.int8)
            out[f"scale/{name}"] = np.float64(scale)
    return out


def some(value):
    return value.detach().flatten()[:: KEPT if value.numel() > 1000 else 1].numpy()


def quantiles(network, images):
    return network(images.double().movedim(-1, 1) / 255).reshape(-1, ACTIONS, ATOMS)


def quantile_huber(theta, target):
    """As QR-DQN prints it: a sum over theta's quantiles of means over the target's."""
    tau = (torch.arange(ATOMS).double() + 0.5) / ATOMS
    u = target[:, None, :] - theta[:, :, None]
    huber = torch.where(u.abs() <= 1, u**2 / 2, u.abs() - 0.5)
    return ((tau[:, None] - (u < 0).double()).abs() * huber).mean(2).sum(1).mean()


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    network = nature()
    out = rounded(network)
    images = torch.randint(0, 256, (2, BATCH, HEIGHT, WIDTH, PLANES), generator=generator)
    action = torch.randint(0, ACTIONS, (BATCH,), generator=generator)
    reward = 2 * torch.randn(BATCH, generator=generator).double()
    terminated = torch.tensor([False, True, False, False])
    row = torch.arange(BATCH)
    with torch.no_grad():
        after = quantiles(network, images[1])
        best = after[row, after.mean(2).argmax(1)]
        target = reward[:, None] + GAMMA * (~terminated)[:, None] * best
    optimiser = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE)
    before = quantiles(network, images[0])
    loss = quantile_huber(before[row, action], target)
    loss.backward()
    optimiser.step()
    for name, value in network.named_parameters():
        out[f"gradient/{name}"] = some(value.grad)
        out[f"after/{name}"] = some(value)
    out |= {
        "images": images.numpy().astype(np.uint8),
        "action": action.numpy().astype(np.int32),
        "reward": reward.numpy(),
        "terminated": terminated.numpy(),
        "quantiles": before.detach().numpy(),
        "loss": np.float64(loss.item()),
    }
    small = {k: np.float32(v) if v.dtype == np.float64 else v for k, v in out.items()}
    np.savez_compressed(Path(__file__).parent / "nature.npz", **small)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
