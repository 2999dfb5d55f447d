"""Stable-Baselines3's SAC, on one core: returns and processor time, as one line of JSON per seed.

    benchmarks/.peers/sb3/bin/python benchmarks/actor_critic/sb3_sac.py Pendulum-v1 --steps 20000

Settings not given are its defaults, which are ours: network 256 - 256, batch 256, tau .005, one
update per step, automatic alpha.
"""

import argparse
import json
import time

import gymnasium
import numpy as np
import torch
from stable_baselines3 import SAC
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor


def train(args: argparse.Namespace, seed: int) -> dict:
    env = Monitor(gymnasium.make(args.env))
    model = SAC(
        "MlpPolicy",
        env,
        learning_rate=args.lr,
        learning_starts=args.warmup,
        policy_kwargs={"net_arch": args.hidden},
        seed=seed,
        device="cpu",
    )
    model.learn(args.warmup + args.steps // 20)  # the first calls of torch are slow
    start, before = time.process_time(), model.num_timesteps
    model.learn(args.steps - before, reset_num_timesteps=False)
    seconds = time.process_time() - start
    returns, _ = evaluate_policy(
        model, Monitor(gymnasium.make(args.env)), args.episodes, return_episode_rewards=True
    )
    return {
        "env": args.env,
        "seed": seed,
        "steps": model.num_timesteps,
        "returns": returns,
        "train": env.get_episode_rewards(),
        "lengths": env.get_episode_lengths(),
        "steps_per_second": (model.num_timesteps - before) / seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("env")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--warmup", type=int, default=256)
    parser.add_argument("--hidden", type=int, nargs="+", default=[256, 256])
    parser.add_argument("--episodes", type=int, default=50)
    args = parser.parse_args()
    torch.set_num_threads(1)
    for seed in range(args.seeds):
        found = train(args, seed)
        print(json.dumps(found, default=float), flush=True)
        print(seed, np.mean(found["returns"]), found["steps_per_second"], flush=True)


if __name__ == "__main__":
    main()
