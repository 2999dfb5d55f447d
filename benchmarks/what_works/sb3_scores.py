"""Scores of run folders by Stable-Baselines3's own `evaluate_policy`, on Gymnasium's environments.

    python benchmarks/what_works/sb3_scores.py RUN...

Each run is one of `tsallax train ENV --seeds 5`. Every seed's best evaluated weights play 100 other
episodes, greedily and by pi. This process imports torch and jax: it needs both tsallax and
stable-baselines3 (benchmarks/peers/sb3.txt).
"""

import argparse
import json
from pathlib import Path

import gymnasium
import numpy as np
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor

import tsallax
from tsallax.storage.run_folder import read_about

EPISODES, SEED = 100, 10_000


def score(folder: Path, cell: int, env_id: str, deterministic: bool) -> float:
    """The mean return of one seed's best weights."""
    env = Monitor(gymnasium.make(env_id))
    env.reset(seed=SEED + cell)
    model = tsallax.load(folder, cell, best=True)
    returns, _ = evaluate_policy(
        model,  # pyright: ignore[reportArgumentType]  (it has the only method that is called)
        env,
        n_eval_episodes=EPISODES,
        deterministic=deterministic,
        return_episode_rewards=True,
    )
    env.close()
    return float(np.mean(returns))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path)
    for folder in parser.parse_args().runs:
        about = read_about(folder)
        cells, env_id = range(len(about.everything["cells"])), about.config["env"]
        for deterministic in (True, False):
            found = np.array([score(folder, cell, env_id, deterministic) for cell in cells])
            row = {
                "environment": env_id,
                "steps": about.config["steps"],
                "acting": "argmax" if deterministic else "pi",
                "mean": round(found.mean(), 1),
                "standard error": round(found.std(ddof=1) / len(found) ** 0.5, 1),
                "seeds": found.round(1).tolist(),
            }
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
