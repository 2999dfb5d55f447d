"""`tsallax evaluate`: whole episodes of a trained run, from fixed seeds."""

from pathlib import Path
from typing import Annotated

import tyro

from tsallax.cli.common import check_counts, check_seed, which_run
from tsallax.spelling import counted


def run(
    folder: Annotated[
        Path | None, tyro.conf.Positional, tyro.conf.arg(metavar="[RUN]", help_behavior_hint=" ")
    ] = None,
    /,
    episodes: int = 20,
    greedy: bool = False,
    seed: int = 0,
    best: bool = False,
    agent: str = "",
    env: str = "",
) -> int:
    """Evaluate a trained run.

    Args:
        folder: a run's folder.
        episodes: number of episodes, with the same initial states for every cell.
        greedy: act by argmax Q instead of a sample of pi.
        seed: seed of the episodes.
        best: use each cell's weights with the best evaluation during training.
        agent: a trained agent that ships with tsallax, instead of RUN; see `tsallax agents`.
        env: the run's own environment, if it is `package:Name`, to allow that import.
    """
    from tsallax._jaxlib import use_cache
    from tsallax.training.build import make_run
    from tsallax.training.stored_config import load_weights, read_run

    check_counts(episodes=episodes)
    check_seed(seed)
    use_cache()
    path, best = which_run(folder, agent, best)
    config, about = read_run(path, env)
    built = make_run(config)
    params = load_weights(path, about, built.learner.params(), best)
    returns = built.learner.evaluate(params, episodes, greedy, seed)
    for label, row in zip(built.labels, returns, strict=True):
        print(f"{label}: {row.mean():.1f} +- {row.std():.1f}")
    print(f"all: {returns.mean():.1f} over {counted(returns.size, 'episode')}")
    return 0
