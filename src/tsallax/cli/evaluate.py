"""`tsallax evaluate`: whole episodes of a trained run, from fixed seeds."""

from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from tsallax.cli.errors import check_counts, check_seed, one_line


@one_line
def run(
    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    /,
    episodes: int = 20,
    greedy: bool = False,
    seed: int = 0,
    env: str = "",
) -> int:
    """Evaluate a trained run.

    Args:
        folder: a run's folder.
        episodes: how many, the same start for every cell.
        greedy: act by argmax Q instead of a sample of pi.
        seed: of the episodes.
        env: the run's own environment, if it is `package:Name`, to allow that import.
    """
    from tsallax.training.cache import use_cache
    from tsallax.training.config import varied
    from tsallax.training.folder import load_weights, read_about
    from tsallax.training.run import make_run

    check_counts(episodes=episodes)
    check_seed(seed)
    use_cache()
    about = read_about(folder, env)
    config = about["config"]
    built = make_run(config)
    params = load_weights(folder, about, built.params)
    returns = np.asarray(built.evaluate(params, episodes, greedy, seed))
    for cell, row in zip(built.cells, returns, strict=True):
        print(f"{cell.label(varied(config))}: {row.mean():.1f} +- {row.std():.1f}")
    print(f"all: {returns.mean():.1f} over {returns.size} episodes")
    return 0
