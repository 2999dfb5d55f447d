"""TAL and Tsallis-DQN inside Stable-Baselines3: its DQN with another bootstrap target.

    benchmarks/.peers/sb3/bin/python benchmarks/outside_check/sb3_tal.py --out FOLDER

It trains on CartPole-v1 with Table 1 of the paper, one run after another, and writes the episodes
of each to FOLDER/ALGO-SEED.csv. A run that has its file is skipped, so the same command resumes.
Nothing is imported from tsallax: this is the other side of a comparison (compare.py).
"""

import argparse
import csv
import json
import time
from pathlib import Path

import gymnasium
import torch
from stable_baselines3 import DQN, __version__
from stable_baselines3.common.callbacks import BaseCallback
from torch import Tensor, nn
from torch.nn import functional

ENV = "CartPole-v1"
# Table 1. The interval of the target network is the table's value for CartPole.
TABLE_1 = {
    "learning_rate": 1e-3,
    "batch_size": 128,
    "buffer_size": 50_000,
    "train_freq": 4,
    "gradient_steps": 1,
    "target_update_interval": 1000,
    "gamma": 0.99,
    "exploration_initial_eps": 0.01,
    "exploration_final_eps": 0.01,
}
HIDDEN = [512, 512]
# The default of Stable-Baselines3 1.1 to 1.5; 2.x starts after 100 steps. Its other defaults, which
# stay unset here, are the same in both: smooth L1 loss, gradient norm of 10, Adam with eps = 1e-8,
# argmax with epsilon, uniform actions until learning starts, time limits that bootstrap.
LEARNING_STARTS = 50_000


def sparsemax(z: Tensor) -> Tensor:
    """The projection of each row of z on the simplex: the Tsallis policy at q = 2, z = Q/alpha."""
    z = z - z.max(-1, keepdim=True).values
    ranked = z.sort(-1, descending=True).values
    sums = ranked.cumsum(-1)
    places = torch.arange(1, z.shape[-1] + 1, dtype=z.dtype)
    size = (1 + places * ranked > sums).sum(-1, keepdim=True)  # of the support
    threshold = (sums.gather(-1, size - 1) - 1) / size
    return (z - threshold).clamp(min=0)


class TAL(DQN):
    """Stable-Baselines3's DQN, with only the target replaced.

    The target is `r + gamma <pi',Q'> + beta (Q(s,a) - <pi,Q>)` with `pi = sparsemax(Q/alpha)`,
    everything from the target network.
    """

    alpha = 0.03
    beta = 0.99

    def targets(
        self, Q: Tensor, actions: Tensor, rewards: Tensor, dones: Tensor, Q_next: Tensor
    ) -> Tensor:
        """The targets of a batch, (batch, 1) like actions, rewards and dones."""
        value, next_value = (
            (sparsemax(x / self.alpha) * x).sum(-1, keepdim=True) for x in (Q, Q_next)
        )
        bonus = self.beta * (Q.gather(-1, actions) - value)
        return rewards + bonus + self.gamma * (1 - dones) * next_value

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        for _ in range(gradient_steps):
            batch = self.replay_buffer.sample(batch_size)
            actions = batch.actions.long()
            with torch.no_grad():
                ends = batch.observations, batch.next_observations
                Q, Q_next = (self.q_net_target(x) for x in ends)
                y = self.targets(Q, actions, batch.rewards, batch.dones, Q_next)
            chosen = self.q_net(batch.observations).gather(-1, actions)
            loss = functional.smooth_l1_loss(chosen, y)
            self.policy.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
            self.policy.optimizer.step()
        self._n_updates += gradient_steps


class TsallisDQN(TAL):
    """TAL without its advantage term."""

    beta = 0.0


ALGORITHMS = {"tal": TAL, "tsallis-dqn": TsallisDQN}


class Episodes(BaseCallback):
    """Writes a row when an episode ends: the step, and the return."""

    def __init__(self, file):
        super().__init__()
        self.writer = csv.writer(file, lineterminator="\n")
        self.writer.writerow(["step", "episode_return"])

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            if "episode" in info:
                self.writer.writerow([self.num_timesteps, info["episode"]["r"]])
        return True


def make_model(algo: str, seed: int, learning_starts: int) -> TAL:
    policy = {"net_arch": HIDDEN, "activation_fn": nn.ReLU}
    return ALGORITHMS[algo](
        "MlpPolicy",
        ENV,
        policy_kwargs=policy,
        learning_starts=learning_starts,
        seed=seed,
        device="cpu",
        **TABLE_1,
    )


def train(algo: str, seed: int, steps: int, learning_starts: int, path: Path) -> None:
    part = path.with_suffix(".part")
    with part.open("w", newline="", buffering=1) as file:
        model = make_model(algo, seed, learning_starts)
        model.learn(steps, callback=Episodes(file), log_interval=None)
    part.replace(path)


def check_settings(folder: Path, steps: int, learning_starts: int) -> None:
    """Record the setting of a folder, or refuse to mix it with another setting."""
    about = {
        "env": ENV,
        "steps": steps,
        "learning_starts": learning_starts,
        **TABLE_1,
        "hidden": HIDDEN,
        "alpha": TAL.alpha,
        "beta": {name: kind.beta for name, kind in ALGORITHMS.items()},
        "versions": {
            "stable-baselines3": __version__,
            "torch": torch.__version__,
            "gymnasium": gymnasium.__version__,
        },
    }
    path = folder / "about.json"
    if not path.exists():
        path.write_text(json.dumps(about, indent=2) + "\n")
    elif json.loads(path.read_text()) != about:
        raise SystemExit(f"{folder} holds runs with other settings: choose another folder")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of the CSV files")
    parser.add_argument("--seeds", type=int, default=5, help="how many, from 0 on")
    parser.add_argument("--steps", type=int, default=150_000, help="environment steps of a run")
    parser.add_argument("--learning-starts", type=int, default=LEARNING_STARTS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    check_settings(options.out, options.steps, options.learning_starts)
    for seed in range(options.seeds):
        for algo in ALGORITHMS:
            path = options.out / f"{algo}-{seed}.csv"
            if path.exists():
                continue
            start = time.monotonic()
            train(algo, seed, options.steps, options.learning_starts, path)
            now = time.strftime("%H:%M:%S")
            print(f"{now} {path.name}: {time.monotonic() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
