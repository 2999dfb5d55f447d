"""Writes sb3_tal.npz: targets and updates of the subclass in benchmarks/outside_check/sb3_tal.py.

Run with the peers' Python: `benchmarks/.peers/sb3/bin/python tests/golden/make_sb3_tal_golden.py`.
It is not needed for the tests, which read the file only. Targets are of random action values, some
of them nearer to each other than alpha. Updates are those of a short run of Stable-Baselines3's own
loop with a small network: the batches it drew, and the parameters before and after.
"""

import sys
from pathlib import Path

import gymnasium
import numpy as np
import torch

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "benchmarks/outside_check"))

from sb3_tal import ALGORITHMS, ENV, TABLE_1, TAL  # noqa: E402

BATCH, ACTIONS = 64, (2, 5)
# A learning rate with which errors soon are below 1: above it the target's size has no gradient.
SMALL = {
    "batch_size": 16,
    "buffer_size": 200,
    "target_update_interval": 16,
    "learning_rate": 0.01,
}
WARMUP, STEPS, LIMIT = 160, 320, 20  # of the short run; LIMIT truncates some of its episodes


def model_of(algo: str) -> TAL:
    settings = {**TABLE_1, **SMALL, "learning_starts": WARMUP, "seed": 0, "device": "cpu"}
    env = gymnasium.make(ENV, max_episode_steps=LIMIT)
    return ALGORITHMS[algo]("MlpPolicy", env, policy_kwargs={"net_arch": [8, 8]}, **settings)


def targets(model: TAL, actions: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(actions)

    def values() -> torch.Tensor:
        level, gap = (torch.randn(BATCH, n, generator=generator) for n in (1, actions))
        return 5 * level + 2 * model.alpha * gap

    x = {
        "Q": values(),
        "actions": torch.randint(actions, (BATCH, 1), generator=generator),
        "rewards": torch.randn(BATCH, 1, generator=generator),
        "dones": (torch.rand(BATCH, 1, generator=generator) < 0.2).float(),
        "Q_next": values(),
    }
    return {**x, "y": model.targets(**x)}


def updates(model: TAL) -> dict[str, torch.Tensor]:
    batches = []
    sample = model.replay_buffer.sample

    def record(size: int):
        batches.append(sample(size))
        return batches[-1]

    def parameters(when: str) -> dict[str, torch.Tensor]:
        names = model.q_net.q_net.state_dict().items()
        return {f"{when}/{name}": value.clone() for name, value in names}

    model.replay_buffer.sample = record
    before = parameters("before")
    model.learn(STEPS, log_interval=None)
    buffer = model.replay_buffer
    assert buffer.timeouts.any(), "no episode was truncated"
    assert (buffer.dones > buffer.timeouts).any(), "no episode terminated"
    names = "observations", "actions", "rewards", "dones", "next_observations"
    drawn = {name: torch.stack([getattr(b, name) for b in batches]) for name in names}
    return {**before, **drawn, **parameters("after")}


def main() -> None:
    torch.set_num_threads(1)
    golden = {}
    for algo in ALGORITHMS:
        model = model_of(algo)
        for actions in ACTIONS:
            found = targets(model, actions)
            golden |= {f"{algo}/targets-{actions}/{name}": x for name, x in found.items()}
        golden |= {f"{algo}/updates/{name}": x for name, x in updates(model).items()}
    np.savez_compressed(HERE / "sb3_tal.npz", **{name: x.numpy() for name, x in golden.items()})


if __name__ == "__main__":
    main()
