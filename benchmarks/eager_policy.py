"""`tsallis_policy` and `tsallis_value` called outside `jit`: `python benchmarks/eager_policy.py`.

For q = 1.5 they contain a loop. It must be compiled at the first call only: a later call may take
at most 20 times as long as one of the jitted function. The calls alternate. The bound is on the
ratio of the fastest ones, which depends little on other load; that of the medians is also printed.
"""

import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter

import jax
import jax.numpy as jnp

import tsallax

CALLS = 1000
BOUND = 20.0


def seconds_of(call: Callable[[], jax.Array]) -> float:
    start = perf_counter()
    call().block_until_ready()
    return perf_counter() - start


def main() -> int:
    Q, q, alpha = jnp.array([0.1, 0.05, 0.0, -0.02]), 1.5, 0.03
    worst = 0.0
    for function in (tsallax.tsallis_policy, tsallax.tsallis_value):
        jitted = jax.jit(function)
        calls = {
            "eager": lambda f=function: f(Q, q, alpha),
            "jitted": lambda f=jitted: f(Q, q, alpha),
        }
        print(f"{function.__name__}, q = {q}")
        first = {name: seconds_of(call) for name, call in calls.items()}
        later = [{name: seconds_of(call) for name, call in calls.items()} for _ in range(CALLS)]
        ratios = {}
        for kind in (min, median):
            eager, compiled = (kind(times[name] for times in later) for name in calls)
            ratios[kind.__name__] = eager / compiled
            print(f"  {kind.__name__:6} eager {1e6 * eager:.0f} us, jitted {1e6 * compiled:.0f} us")
        print("  first " + ", ".join(f"{name} {seconds:.1f} s" for name, seconds in first.items()))
        listed = ", ".join(f"{ratio:.1f} ({name})" for name, ratio in ratios.items())
        print(f"  eager / jitted: {listed}; bound {BOUND:g}")
        worst = max(worst, ratios["min"])
    return int(worst > BOUND)


if __name__ == "__main__":
    sys.exit(main())
