"""The time per step of the parallel learner: stepping, acting, learning.

    python benchmarks/parallel_profile.py [ENV ...]

For host environments the three are timed as they run. A compiled environment is one program, so its
parts are compiled and timed alone, and the remainder is the rest of the loop. They are compared
with the time for the network's matrix products alone at the rate of this machine. Use one core:
`taskset -c 0 python ...`; processor time is measured, which depends less on other load.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import tyro

from tsallax.experiments.estimate import matmul_rate, operations
from tsallax.learners import parallel_update
from tsallax.training.build import Run, make_run, rollouts_of
from tsallax.training.config import Config
from tsallax.training.resolve import resolve

ENVS = ("CartPole-v1", "MinAtar/Breakout", "MinAtar/Seaquest", "LunarLander-v3")
ROUNDS = 5


def main(envs: Annotated[tuple[str, ...], tyro.conf.Positional] = ENVS) -> None:
    rate = matmul_rate()
    print(f"matrix products: {rate / 1e9:.0f} GFLOP/s; microseconds per environment step:")
    for env in envs:
        run = make_run(resolve(Config(env, preset="paper", learner="parallel", steps=10**6)))
        measure = compiled if run.config.loop == "compiled" else hosted
        parts = measure(run)
        products = operations(run.config) / rate * 1e6
        told = ", ".join(f"{name} {cost:.1f}" for name, cost in parts.items())
        whole = parts["all"]
        print(f"{env}: {told}; {1e6 / whole:,.0f} steps/s; products alone {products:.1f} "
              f"({products / whole:.0%})", flush=True)  # fmt: skip


def seconds(call: Callable[[], Any]) -> float:
    """The shortest time of a few rounds, after one that compiles."""
    jax.block_until_ready(call())
    found = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        jax.block_until_ready(call())
        found.append(time.process_time() - begin)
    return min(found)


def compiled(run: Run) -> dict[str, float]:
    learner: Any = run.learner
    env, agent, shape = learner.env, run.agent, rollouts_of(run.config)
    hp = jax.tree.map(lambda x: x[0], run.hp)
    keys = jax.random.split(jax.random.key(0), shape.envs)
    state, start = agent.init(keys[0]), jax.vmap(env.reset)(keys)
    seen = jax.vmap(env.observe)(start)
    steps = shape.length

    def stepping(start, key):
        def one(now, key):
            fresh = jax.vmap(env.reset)(jax.random.split(key, shape.envs))
            state, outcome = jax.vmap(env.step)(now, jnp.zeros(shape.envs, jnp.int32), keys)
            done = outcome.terminated | outcome.truncated
            state = jax.tree.map(
                lambda new, old: jnp.where(done.reshape(-1, *(1,) * (old.ndim - 1)), new, old),
                fresh,
                state,
            )
            return state, outcome.reward

        return jax.lax.scan(one, start, jax.random.split(key, steps))

    def acting(state, seen, key):
        def one(seen, key):  # new observations at each step, so that nothing is loop-invariant
            action, Z = parallel_update.act(agent, state, seen, jnp.zeros(()), hp, key)
            return jnp.roll(seen, 1, 0), (action, Z)

        return jax.lax.scan(one, seen, jax.random.split(key, steps))

    rows = (steps, shape.envs)
    Z = jax.eval_shape(agent.atoms, state.params, seen)
    played = parallel_update.Played(
        jnp.broadcast_to(seen, (steps, *seen.shape)),
        jnp.zeros((steps, *Z.shape)),
        *(jnp.zeros(rows, kind) for kind in (jnp.int32, jnp.float32, bool, bool)),
    )

    def learning(state, played, key):
        y = parallel_update.returns(agent, shape, state, played, played.Z, hp, key)
        return parallel_update.learn(agent, shape, state, played, y, jnp.zeros(()), hp, key)

    key = keys[0]
    calls = {
        "stepping": (stepping, start, key),
        "acting": (acting, state, seen, key),
        "learning": (learning, state, played, key),
    }
    found = {name: seconds(partial(jax.jit(f), *x)) for name, (f, *x) in calls.items()}
    periods = learner.train(learner.start(), lambda *_: None)
    next(periods)
    begin, count = time.process_time(), 0
    while time.process_time() - begin < 3:
        next(periods)
        count += run.config.target_period
    whole = (time.process_time() - begin) / count
    return {**{n: s / shape.frames * 1e6 for n, s in found.items()}, "all": whole * 1e6}


def hosted(run: Run) -> dict[str, float]:
    learner: Any = run.learner
    spent = dict.fromkeys(("stepping", "acting", "learning"), 0.0)

    def timed(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def measured(*arguments):
            begin = time.process_time()
            out = jax.block_until_ready(call(*arguments))
            spent[name] += time.process_time() - begin
            return out

        return measured

    programs = learner.programs
    learner.programs = programs._replace(
        act=timed("acting", programs.act), update=timed("learning", programs.update)
    )
    state = learner.start()
    learner.envs.step = timed("stepping", learner.envs.step)
    periods = learner.train(state, lambda *_: None)
    next(periods)
    spent.update(dict.fromkeys(spent, 0.0))
    begin, first = time.process_time(), next(periods).step
    whole = time.process_time() - begin
    count = run.config.target_period
    assert first == 2 * count
    return {n: s / count * 1e6 for n, s in (*spent.items(), ("all", whole))}


if __name__ == "__main__":
    tyro.cli(main)
