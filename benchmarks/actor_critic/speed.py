"""SAC's environment steps per second of one core: tsallax, Stable-Baselines3, sbx and rejax.

    .venv/bin/python benchmarks/actor_critic/speed.py Pendulum-v1 HalfCheetah-v5

All have a network 256 - 256, batches of 256, one update per step, an automatic alpha and one
environment. Each is a separate process, pinned to the same core, with one thread; they take turns,
and a turn is measured by the process's own processor time, so that other load has little effect.
Compilation is done before. rejax has no MuJoCo. The environments of the peers are made by
`make benchmarks/.peers/sb3/.ready benchmarks/.peers/rejax/.ready`.
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from subprocess import DEVNULL, PIPE, Popen

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / "benchmarks/.peers"
TURN = 500  # steps of a turn and of our periods; twice as many precede the first turn
HIDDEN = [256, 256]


def sides(env: str) -> list[str]:
    native = ["tsallax sac, compiled", "tsallax tal-ac, compiled", "rejax"]
    every = ["tsallax sac, host", "tsallax tal-ac, host", "sbx", "Stable-Baselines3"]
    return [*(native if env == "Pendulum-v1" else []), *every]


# In the process of each side ---------------------------------------------------------------------


def learn_ours(env: str, algo: str, loop: str) -> Callable[[int], None]:
    from tsallax.training.build import make_run
    from tsallax.training.config import Config
    from tsallax.training.resolve import resolve

    own = {"steps": 10**7, "target_period": TURN, "warmup": 256, "buffer": 100_000}
    run = make_run(resolve(Config(env, algo=algo, loop=loop, hidden=tuple(HIDDEN), **own)))
    periods = run.learner.train(run.learner.start(), lambda *_: None)

    def learn(steps: int) -> None:
        for _ in range(steps // TURN):
            next(periods)

    return learn


def learn_theirs(env: str, side: str) -> Callable[[int], None]:
    import torch

    torch.set_num_threads(1)
    if side == "sbx":
        from sbx import SAC
    else:
        from stable_baselines3 import SAC
    numbers = {"learning_starts": 256, "buffer_size": 100_000, "seed": 0}
    model = SAC("MlpPolicy", env, policy_kwargs={"net_arch": HIDDEN}, device="cpu", **numbers)
    return lambda steps: model.learn(steps, reset_num_timesteps=model.num_timesteps == 0)


def learn_rejax(env: str) -> Callable[[int], None]:
    import jax
    import jax.numpy as jnp
    from rejax import SAC

    algorithm = SAC.create(
        env=env,
        num_envs=1,
        total_timesteps=TURN,
        eval_freq=TURN,
        skip_initial_evaluation=True,
        buffer_size=100_000,
        fill_buffer=256,
        batch_size=256,
        learning_rate=3e-4,
        polyak=0.995,
        hidden_layer_sizes=tuple(HIDDEN),
    )
    algorithm = algorithm.replace(eval_callback=lambda *_: jnp.zeros(()))
    now = jax.tree.map(jnp.copy, jax.jit(algorithm.init_state)(jax.random.key(0)))
    train = jax.jit(lambda now: algorithm.train(train_state=now)[0], donate_argnums=0)

    def learn(steps: int) -> None:
        nonlocal now
        for _ in range(steps // TURN):
            now = jax.block_until_ready(train(now))

    return learn


def contend(env: str, side: str) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # redirects what a library prints
    name, _, rest = side.partition(" ")
    if name == "tsallax":
        algo, loop = rest.split(", ")
        learn = learn_ours(env, algo, loop)
    elif name == "rejax":
        learn = learn_rejax(env)
    else:
        learn = learn_theirs(env, side)
    learn(2 * TURN)
    print("ready", file=answers, flush=True)
    for _ in sys.stdin:
        begin = time.process_time()
        learn(TURN)
        print(json.dumps(TURN / (time.process_time() - begin)), file=answers, flush=True)


# The race ----------------------------------------------------------------------------------------


def start(env: str, side: str, core: int) -> Popen:
    ours = side.startswith("tsallax")
    threads = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    given = {**os.environ, **dict.fromkeys(threads, "1"), "JAX_PLATFORMS": "cpu"}
    if ours:
        given["PYTHONPATH"] = str(ROOT / "src")
    peer = PEERS / ("rejax" if side == "rejax" else "sb3") / "bin/python"
    python = sys.executable if ours else str(peer)
    command = ["taskset", "-c", str(core), python, __file__, env, "--side", side]
    return Popen(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, text=True, env=given)


def answer(process: Popen, question: str = "") -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    if question:
        print(question, file=process.stdin, flush=True)
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"{' '.join(map(str, process.args))} ended")
    return line


def race(env: str, turns: int, core: int) -> None:
    found: dict[str, list[float]] = {side: [] for side in sides(env)}
    processes = {side: start(env, side, core) for side in found}
    try:
        for process in processes.values():
            answer(process)
        order, random = list(processes), Random(0)
        for _ in range(turns):
            random.shuffle(order)
            for side in order:
                found[side].append(json.loads(answer(processes[side], "go")))
    finally:
        for process in processes.values():
            process.kill()
            process.wait()
    base = found["Stable-Baselines3"]
    print(f"\n| {env} | steps/s | least, most | times Stable-Baselines3 |\n|---|---|---|---|")
    for side, rates in found.items():
        ratio = statistics.median(a / b for a, b in zip(rates, base, strict=True))
        middle = statistics.median(rates)
        print(f"| {side} | {middle:.0f} | {min(rates):.0f}, {max(rates):.0f} | {ratio:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("envs", nargs="+")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--side", help="be this side of the race")
    args = parser.parse_args()
    for env in args.envs:
        if args.side:
            contend(env, args.side)
        else:
            race(env, args.turns, args.core)


if __name__ == "__main__":
    main()
