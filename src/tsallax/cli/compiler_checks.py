"""Checks that XLA computes correctly on this CPU: one small function per known fault.

The faults are public (each check names its issue); the programs are our own. They run on every
version, since a table of versions covers only the past. They need only jax and NumPy.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import DTypeLike


class Verdict(NamedTuple):
    ok: bool
    detail: str


class Check(NamedTuple):
    name: str
    issue: str
    run: Callable[[], Verdict]
    required: bool = True  # otherwise it is a note: tsallax is written to avoid the fault


# --- Numbers -------------------------------------------------------------------------------------


def wrong_rows(rows: int, dtype: DTypeLike) -> int:
    """The number of vmapped sums of (M x)^2 that differ from NumPy's."""
    rng = np.random.default_rng(0)
    M, x = rng.uniform(1, 2, (3, 3)).astype(dtype), rng.uniform(1, 2, (rows, 3)).astype(dtype)
    got = jax.jit(jax.vmap(lambda row: jnp.sum((M @ row) ** 2)))(x)
    want = np.sum((x.astype(np.float64) @ M.T.astype(np.float64)) ** 2, axis=1)
    # All terms are positive, so rounding errors are near 1e-7; omitted or repeated rows exceed it.
    return int(np.sum(~np.isclose(np.asarray(got, np.float64), want, rtol=1e-4)))


def matvec_sum() -> Verdict:
    """0.10.2 is wrong at these sizes, but not below them, nor at every size above."""
    cases = [(np.float32, 32_769), (np.float32, 40_000), (np.float64, 16_385), (np.float64, 40_000)]
    with jax.enable_x64(True):
        counts = [(wrong_rows(rows, dtype), rows, dtype) for dtype, rows in cases]
    bad = [f"{n} of {rows} rows wrong in {dtype.__name__}" for n, rows, dtype in counts if n]
    return Verdict(not bad, "; ".join(bad) or "equal to NumPy in float32 and float64")


def wrong_elements(shift: Callable[[Array], Array]) -> int:
    """The number of elements of x + 1, shifted down by one row, that differ from NumPy's."""
    x = np.arange(84 * 84, dtype=np.int32).reshape(84, 84)
    got = jax.jit(lambda x: shift(x + 1)[None])(x)[0]  # the new axis triggers the fault
    return int(np.sum(np.asarray(got) != np.concatenate([x[:1], x[:-1]]) + 1))


def shift_by_concatenation() -> Verdict:
    n = wrong_elements(lambda x: jnp.concatenate([x[:1], x[:-1]]))
    return Verdict(n == 0, f"{n} of {84 * 84} elements wrong" if n else "equal to NumPy")


def shift_in_place() -> Verdict:
    n = wrong_elements(lambda x: x.at[1:].set(x[:-1]))
    wrong = f"{n} of {84 * 84} elements wrong: write it as a concatenation"
    return Verdict(n == 0, wrong if n else "equal to NumPy")


# --- Repeatability -------------------------------------------------------------------------------


def training(steps: int = 5) -> Callable[[], np.ndarray]:
    """A program similar to a learner's: the weights after a few gradient steps, and a long sum."""
    rng = np.random.default_rng(0)
    sizes = [(64, 512), (512, 512), (512, 8)]
    weights = [rng.normal(0, n**-0.5, (n, m)).astype(np.float32) for n, m in sizes]
    x, y = (rng.normal(size=(128, n)).astype(np.float32) for n in (64, 8))
    long = rng.normal(size=1_000_003).astype(np.float32)

    def loss(W: list[Array]) -> Array:
        return jnp.mean((jax.nn.relu(jax.nn.relu(x @ W[0]) @ W[1]) @ W[2] - y) ** 2)

    def step(W: list[Array], _: None) -> tuple[list[Array], None]:
        return jax.tree.map(lambda w, g: w - 0.1 * g, W, jax.grad(loss)(W)), None

    @jax.jit
    def program(W: list[Array], long: Array) -> Array:
        W = lax.scan(step, W, length=steps)[0]
        return jnp.concatenate([W[2].ravel(), jnp.mean(long**2)[None]])

    return lambda: np.asarray(program(weights, long))


def repeats(program: Callable[[], np.ndarray], calls: int = 30) -> Verdict:
    n = len({program().tobytes() for _ in range(calls)})
    return Verdict(n == 1, f"{n} different results in {calls} calls" if n > 1 else "the same bits")


def repeatable() -> Verdict:
    return repeats(training())


ONE_THREAD = """
import os, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # before XLA counts its threads
import json
from tsallax.cli.compiler_checks import training
json.dump(training()().tolist(), sys.stdout)
"""


def same(one: np.ndarray, many: np.ndarray) -> Verdict:
    """Block sizes, and so rounding, may depend on the number of threads; larger gaps are wrong."""
    if np.array_equal(one, many):
        return Verdict(True, "the same bits on one thread as on all")
    off = float(np.max(np.abs(one - many)) / np.max(np.abs(one)))
    return Verdict(off < 1e-4, f"one thread and all differ by {off:.0e} (rounding is below 1e-4)")


def threads() -> Verdict:
    if not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) == 1:
        return Verdict(True, "not run: there is one thread only, or no way to choose the number")
    # The child has the same version and package, even if `guard` refuses it.
    env = os.environ | {"TSALLAX_ANY_JAXLIB": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    child = [sys.executable, "-W", "ignore", "-c", ONE_THREAD]
    one = subprocess.run(child, env=env, capture_output=True, text=True, check=True, timeout=120)
    return same(np.asarray(json.loads(one.stdout), np.float32), training()())


# --- Cost ----------------------------------------------------------------------------------------

ROWS = (1_000, 100_000)  # of 16 numbers each: 64 kB and 6.4 MB
GROWTH = 20.0  # measured: at least 70 if the array is copied at each step, 0.8 to 1.6 if it is not
Body = Callable[[Array, Array], Array]


def growth(body: Body, steps: int = 300, seconds: float = 1.5) -> float:
    """The factor by which a loop of `array = body(array, t)` is slower on a 100 times larger array.

    The two sizes alternate and the best time of each counts, so that a noisy machine's pauses,
    which only add time, affect both and mostly drop out.
    """

    def loop(array: Array) -> Array:
        return lax.fori_loop(0, steps, lambda t, array: body(array, t), array)

    program = jax.jit(loop, donate_argnums=0)
    arrays = [jax.block_until_ready(program(jnp.zeros((rows, 16)))) for rows in ROWS]
    best, end = [np.inf, np.inf], time.perf_counter() + seconds
    for turn in range(50):
        if turn >= 3 and time.perf_counter() > end:
            break
        for i, array in enumerate(arrays):
            start = time.perf_counter()
            arrays[i] = jax.block_until_ready(program(array))
            best[i] = min(best[i], time.perf_counter() - start)
    return best[1] / best[0]


def constant_cost(body: Body) -> Verdict:
    ratio = growth(body)
    return Verdict(ratio < GROWTH, f"x{ratio:.1f} for 100 times the array (limit x{GROWTH:.0f})")


def write(array: Array, t: Array) -> Array:
    return array.at[7 * t % len(array)].set(t.astype(array.dtype))


def write_and_sample(array: Array, t: Array) -> Array:
    """The operations of a replay buffer in each step."""
    i = jax.random.randint(jax.random.key(t), (8,), 0, len(array))
    return array.at[7 * t % len(array)].set(jnp.mean(array[i], axis=0) + 1)


def branch_order() -> Verdict:
    """Whether a branch that returns its operand unchanged is free or a copy, by its position."""

    def keep(array: Array, t: Array) -> Array:
        return array

    # In both, every step keeps the array, so neither should do any work.
    work_first = growth(lambda array, t: lax.cond(t < 0, write, keep, array, t))
    keep_first = growth(lambda array, t: lax.cond(t >= 0, keep, write, array, t))
    detail = f"cond(p, work, keep) x{work_first:.1f}, cond(p, keep, work) x{keep_first:.0f}"
    return Verdict(max(work_first, keep_first) < GROWTH, f"{detail} for 100 times the array")


CHECKS = (
    Check("vmapped mat-vec and sum", "jax#39103", matvec_sum),
    Check("shift by concatenation", "xla#49176", shift_by_concatenation),
    Check("one program, many calls", "jax#39741", repeatable),
    Check("one thread against all", "jax#39741", threads),
    Check("write in a loop", "jax#40101", lambda: constant_cost(write)),
    Check("write and sample in a loop", "jax#31284", lambda: constant_cost(write_and_sample)),
    Check("shift in place, then reshape", "xla#49176", shift_in_place, required=False),
    Check("untouched operand of a branch", "jax#38145", branch_order, required=False),
)


def run(check: Check) -> Verdict:
    """The verdict on the CPU, even if it is not the default device. An exception is a failure."""
    try:
        with jax.default_device(jax.devices("cpu")[0]):
            return check.run()
    except Exception as error:
        return Verdict(False, f"{type(error).__name__}: {error}".splitlines()[0])
