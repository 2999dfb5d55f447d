"""One run of Stable-Baselines3's SAC on one thread: returns and processor time, as JSON.

    benchmarks/.peers/sb3/bin/python benchmarks/actor_critic/sb3_sac.py Pendulum-v1 --steps 20000

Settings not given are its defaults, which are ours: network 256 - 256, batch 256, one update per
step, automatic alpha.
"""

import argparse
import json
import time

import gymnasium
import torch
from stable_baselines3 import SAC
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor


def train(args: argparse.Namespace) -> dict:
    env = Monitor(gymnasium.make(args.env))
    model = SAC(
        "MlpPolicy",
        env,
        learning_rate=args.lr,
        learning_starts=args.warmup,
        tau=args.tau,
        policy_kwargs={"net_arch": args.hidden},
        seed=args.seed,
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
        "seed": args.seed,
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
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--warmup", type=int, default=256)
    parser.add_argument("--tau", type=float, default=0.005)
    parser.add_argument("--hidden", type=int, nargs="+", default=[256, 256])
    parser.add_argument("--episodes", type=int, default=50)
    args = parser.parse_args()
    torch.set_num_threads(1)
    print(json.dumps(train(args), default=float))


if __name__ == "__main__":
    main()
