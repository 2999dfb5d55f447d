"""Writes torch.npz: what torch's layers, losses and optimisers make of small numbers.

Run with a Python that has torch 2.13.0 and numpy: `python tests/golden/make_torch_golden.py`. It is
not needed for the tests, which read the file only. Arrays keep torch's names and layouts; torch
computes in float64, so that the file holds the exact arithmetic and not torch's rounding.
"""

from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

UPDATES, BATCH = 3, 6


def mlp():
    return nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 2)), (
        3,
    )


def conv():
    """MinAtar's network, small. Its input is (height, width, planes) as in MinAtar itself."""
    return nn.Sequential(
        nn.Conv2d(2, 4, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(4 * 4 * 4, 8),
        nn.ReLU(),
        nn.Linear(8, 3),
    ), (6, 6, 2)


def adam(parameters):
    return torch.optim.Adam(parameters, lr=1e-3)


def rmsprop(parameters):
    return torch.optim.RMSprop(parameters, lr=2.5e-4, alpha=0.95, eps=0.01, centered=True)


# name: (network, optimiser, loss, maximal norm of the gradient)
CASES = {
    "mlp-adam-squared": (mlp, adam, functional.mse_loss, None),
    "mlp-adam-huber": (mlp, adam, functional.smooth_l1_loss, 10.0),
    "mlp-adam-huber-clipped": (mlp, adam, functional.smooth_l1_loss, 0.05),
    "conv-rmsprop-squared": (conv, rmsprop, functional.mse_loss, None),
    "conv-rmsprop-huber": (conv, rmsprop, functional.smooth_l1_loss, 10.0),
    "conv-rmsprop-huber-clipped": (conv, rmsprop, functional.smooth_l1_loss, 0.05),
}


def batches(network, shape, generator):
    """A batch an update. Errors on both sides of Huber's corner at 1."""
    actions = network[-1].out_features
    if len(shape) == 3:
        observation = torch.randint(0, 2, (UPDATES, BATCH, *shape), generator=generator).double()
    else:
        observation = torch.randn(UPDATES, BATCH, *shape, generator=generator).double()
    action = torch.randint(0, actions, (UPDATES, BATCH), generator=generator)
    y = 2 * torch.randn(UPDATES, BATCH, generator=generator).double()
    return observation, action, y


def snapshot(network):
    return {name: value.detach().numpy().copy() for name, value in network.state_dict().items()}


def run(network_of, optimiser_of, loss_of, max_norm):
    torch.manual_seed(0)
    network, shape = network_of()
    out = {f"init/{name}": value for name, value in snapshot(network).items()}
    network.double()
    optimiser = optimiser_of(network.parameters())
    data = batches(network, shape, torch.Generator().manual_seed(1))
    losses, norms = [], []
    for i, (observation, action, y) in enumerate(zip(*data, strict=True)):
        x = observation.movedim(-1, 1) if len(shape) == 3 else observation
        chosen = network(x)[torch.arange(BATCH), action]
        loss = loss_of(chosen, y)
        optimiser.zero_grad()
        loss.backward()
        infinite = float("inf") if max_norm is None else max_norm
        norms.append(nn.utils.clip_grad_norm_(network.parameters(), infinite).item())
        optimiser.step()
        losses.append(loss.item())
        if i in (0, UPDATES - 1):
            out |= {f"after{i + 1}/{name}": value for name, value in snapshot(network).items()}
    print([round(n, 3) for n in norms], [round(x, 3) for x in losses])
    names = ("observation", "action", "y")
    out |= {name: value.numpy() for name, value in zip(names, data, strict=True)}
    return out | {"losses": np.array(losses), "norms": np.array(norms)}


def initialisation(layer_of, draws=400):
    """21 quantiles of the first weights and biases that torch draws."""
    torch.manual_seed(2)
    layers = [layer_of() for _ in range(draws)]
    levels = np.linspace(0, 1, 21)
    weights = torch.cat([layer.weight.detach().flatten() for layer in layers])
    biases = torch.cat([layer.bias.detach() for layer in layers])
    return {
        "weight": np.quantile(weights.numpy(), levels),
        "bias": np.quantile(biases.numpy(), levels),
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    golden = {}
    for case, arguments in CASES.items():
        golden |= {f"{case}/{name}": value for name, value in run(*arguments).items()}
    for kind, layer_of in {
        "linear": lambda: nn.Linear(9, 16),
        "conv": lambda: nn.Conv2d(4, 16, 3),
    }.items():
        golden |= {f"{kind}/{name}": value for name, value in initialisation(layer_of).items()}
    small = {
        name: value.astype(np.float32 if value.dtype.kind == "f" else np.int32)
        for name, value in golden.items()
    }
    np.savez_compressed(Path(__file__).parent / "torch.npz", **small)
