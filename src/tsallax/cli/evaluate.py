"""`tsallax evaluate`: whole episodes of a trained run, from fixed seeds."""

from pathlib import Path

import numpy as np
import tyro

from tsallax.cli.errors import one_line


@one_line
def run(
    folder: tyro.conf.Positional[Path], /, episodes: int = 20, greedy: bool = False, seed: int = 0
) -> int:
    """Evaluate a trained run.

    Args:
        folder: a run's folder.
        episodes: how many, the same start for every cell.
        greedy: act by argmax Q instead of a sample of pi.
        seed: of the episodes.
    """
    import jax

    from tsallax.cli.train import label
    from tsallax.training.config import varied
    from tsallax.training.evaluate import evaluate
    from tsallax.training.folder import WEIGHTS, load_weights, read_about
    from tsallax.training.run import make_run

    if episodes < 1:
        raise ValueError(f"episodes must be at least 1, not {episodes}")
    config = read_about(folder)["config"]
    built = make_run(config)
    keys = jax.random.split(jax.random.key(0), len(built.cells))
    like = jax.eval_shape(jax.vmap(built.agent.init), keys).params
    params = load_weights(folder / WEIGHTS, like)
    returns = np.asarray(evaluate(built.env, built.agent, episodes, greedy, params, built.hp, seed))
    for cell, row in zip(built.cells, returns, strict=True):
        print(f"{label(cell, varied(config))}: {row.mean():.1f} +- {row.std():.1f}")
    print(f"all: {returns.mean():.1f} over {returns.size} episodes")
    return 0
