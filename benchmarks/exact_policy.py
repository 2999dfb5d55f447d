"""The exact Tsallis policy compared with sparsemax: `python benchmarks/exact_policy.py`.

The batch has 256 rows of 6 action values, jitted; the reference is `optax.projections` vmapped over
the same batch. Each time is the best of several interleaved rounds.
"""

from functools import partial
from timeit import timeit

import jax
import jax.numpy as jnp
import optax

import tsallax

ROUNDS, CALLS = 15, 200
REFERENCE = "optax projection_simplex"
INDICES = (0.5, 1.5, 2.0, 2.5, 10.0)


def main() -> None:
    Q = 0.05 * jax.random.normal(jax.random.key(0), (256, 6))
    alpha = jnp.float32(0.03)
    exact = jax.jit(tsallax.tsallis_policy)
    optax_sparsemax = jax.jit(jax.vmap(optax.projections.projection_simplex))
    closed = jax.jit(lambda Q, alpha: tsallax.tsallis_policy(Q, 2, alpha))
    programs = {
        REFERENCE: lambda: optax_sparsemax(Q / alpha),
        "sparsemax (q = 2, closed form)": lambda: closed(Q, alpha),
        **{f"exact, traced q = {q:g}": partial(exact, Q, q, alpha) for q in INDICES},
    }
    best = dict.fromkeys(programs, float("inf"))
    for run in programs.values():
        run().block_until_ready()
    for _ in range(ROUNDS):
        for name, run in programs.items():
            seconds = timeit(lambda run=run: run().block_until_ready(), number=CALLS) / CALLS
            best[name] = min(best[name], seconds)
    reference = best[REFERENCE]
    for name, seconds in best.items():
        print(f"{name:32} {1e6 * seconds:8.1f} us   x {seconds / reference:.2f}")


if __name__ == "__main__":
    main()
