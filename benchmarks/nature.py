"""The Nature network: an update and an action, against jax's own convolution and torch.

    python benchmarks/nature.py [--threads 1] [--torch PYTHON_WITH_TORCH]

The update has a batch of 32, 6 actions, 200 quantiles and Adam: three forward passes, one backward.
Contenders take short turns, each with a new batch, in a random order for each round. Ratios are
taken within a round, so that other load affects all equally. The output is Markdown.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from itertools import cycle
from random import Random
from statistics import median, quantiles
from subprocess import PIPE, Popen
from time import perf_counter, sleep

import numpy as np

ROUNDS, CALLS = 15, {"update": 2, "update in a loop": 1, "act": 20}
LOOP = 2  # updates per program
PAUSE = 0.1  # seconds between turns: torch's threads spin for a while after their work
BATCH, ACTIONS, ATOMS = 32, 6, 200
Program = Callable[[], object]


def batches(count: int = 6) -> list[tuple[np.ndarray, ...]]:
    """Observation, action, reward, terminated, next observation."""
    rng = np.random.default_rng(0)

    def images():
        return rng.integers(0, 256, (BATCH, 84, 84, 4), dtype=np.uint8)

    return [
        (
            images(),
            rng.integers(0, ACTIONS, BATCH),
            rng.normal(size=BATCH).astype(np.float32),
            rng.random(BATCH) < 0.1,
            images(),
        )
        for _ in range(count)
    ]


def jax_programs(network) -> dict[str, Program]:
    import jax
    import jax.numpy as jnp

    from tsallax.agents import make_agent
    from tsallax.operators import get_algorithm, make_hparams
    from tsallax.types import Transition

    agent = make_agent(network, get_algorithm("tal"))
    hp, key = make_hparams("tal", learning_rate=1e-4), jax.random.key(0)

    def update(learner, batch):
        return agent.update(learner, batch, hp, key)

    def loop(learner, several):
        return jax.lax.scan(update, learner, several)

    one = [Transition(*map(jnp.asarray, batch)) for batch in batches()]
    several = [jax.tree.map(lambda *x: jnp.stack(x), *one[i : i + LOOP]) for i in range(0, 6, LOOP)]

    def learning(function, data) -> Program:
        program, turn = jax.jit(function, donate_argnums=0), cycle(data)
        learner = jax.tree.map(jnp.copy, agent.init(key))  # no two leaves share a buffer

        def run():
            nonlocal learner
            learner, loss = program(learner, next(turn))
            loss.block_until_ready()

        return run

    params, images = agent.init(key).params, cycle(one[0].observation)
    act = jax.jit(lambda params, x: agent.act(params, x, jnp.float32(0.01), hp, key))
    return {
        "update": learning(update, one),
        "update in a loop": learning(loop, several),
        "act": lambda: act(params, next(images)).block_until_ready(),
    }


def jaxs_own():
    """The same network with jax's own convolution and its gradients."""
    import jax
    import jax.numpy as jnp

    from tsallax.networks import NATURE, Network, mlp, nature

    def apply(params, x):
        convs, layers = params
        x = x.astype(jnp.float32) / 255
        for layer, (size, stride, _) in zip(convs, NATURE, strict=True):
            kernel = layer.weight.reshape(size, size, x.shape[-1], -1)
            axes = ("NHWC", "HWIO", "NHWC")
            x = jax.lax.conv_general_dilated(
                x[None], kernel, (stride,) * 2, "VALID", None, None, axes
            )
            x = jax.nn.relu(x[0] + layer.bias[None, None])
        return mlp((x.size,), (ACTIONS, ATOMS), (512,)).apply(layers, x)

    return Network(nature((84, 84, 4), (ACTIONS, ATOMS)).init, apply)


def torch_programs(channels_last: bool) -> dict[str, Program]:
    """Advantage learning, similar to TAL, in torch."""
    import torch
    from torch import nn

    form = torch.channels_last if channels_last else torch.contiguous_format

    def make():
        return nn.Sequential(
            *(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU()),
            *(nn.Conv2d(64, 64, 3, 1), nn.ReLU(), nn.Flatten()),
            *(nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, ACTIONS * ATOMS)),
        ).to(memory_format=form)

    def tensors(batch):
        observation, action, reward, terminated, after = map(torch.from_numpy, batch)
        x, y = (z.movedim(-1, 1).contiguous(memory_format=form) for z in (observation, after))
        return x, action, reward, terminated, y

    network, target = make(), make()
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-4)
    row, tau = torch.arange(BATCH), (torch.arange(ATOMS) + 0.5) / ATOMS
    data = [tensors(batch) for batch in batches()]
    turn, images = cycle(data), cycle(data[0][0])

    def values(network, images):
        return network(images.float() / 255).view(-1, ACTIONS, ATOMS)

    def update():
        observation, action, reward, terminated, after = next(turn)
        with torch.no_grad():
            Q = values(target, observation).mean(2)
            Z = values(target, after)
            bonus = 0.99 * (Q[row, action] - Q.max(1).values)
            discount = 0.99 * (~terminated).float()
            best = Z[row, Z.mean(2).argmax(1)]
            y = (reward + bonus)[:, None] + discount[:, None] * best
        u = y[:, None, :] - values(network, observation)[row, action][:, :, None]
        huber = torch.where(u.abs() <= 1, u * u / 2, u.abs() - 0.5)
        loss = ((tau[:, None] - (u < 0).float()).abs() * huber).mean(2).sum(1).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        return loss.item()

    def act():
        with torch.no_grad():
            return values(network, next(images)[None]).mean(2).argmax().item()

    return {"update": update, "act": act}


def seconds(program: Program, calls: int) -> float:
    start = perf_counter()
    for _ in range(calls):
        program()
    return (perf_counter() - start) / calls


def serve(threads: int) -> None:
    """The torch process: answers each line of standard input with one timing as JSON."""
    import torch

    torch.set_num_threads(threads)
    programs = {"torch": torch_programs(False), "torch, channels last": torch_programs(True)}
    print(json.dumps(torch.__version__), flush=True)
    for line in sys.stdin:
        name, job = json.loads(line)
        print(json.dumps(seconds(programs[name][job], CALLS[job])), flush=True)


def contenders(python: str | None, threads: int) -> Iterator[tuple[str, str, Callable[[], float]]]:
    """A name, a job, and a function that takes one turn."""
    from tsallax.networks import nature

    networks = {"tsallax": nature((84, 84, 4), (ACTIONS, ATOMS)), "jax's convolution": jaxs_own()}
    for name, network in networks.items():
        for job, program in jax_programs(network).items():
            share = LOOP if job == "update in a loop" else 1
            yield name, job, lambda p=program, j=job, s=share: seconds(p, CALLS[j]) / s
    if python is None:
        return
    worker = Popen([python, __file__, "--serve", str(threads)], stdin=PIPE, stdout=PIPE, text=True)
    assert worker.stdin
    assert worker.stdout

    def ask(*question: str) -> float:
        print(json.dumps(question), file=worker.stdin, flush=True)
        return json.loads(worker.stdout.readline())

    print("torch", json.loads(worker.stdout.readline()))
    for name in ("torch", "torch, channels last"):
        for job in ("update", "act"):
            yield name, job, lambda n=name, j=job: ask(n, j)


def main(threads: int, python: str | None) -> None:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])  # before jax counts them
    import jax

    print(f"jax {jax.__version__}, {threads} threads\n")
    everyone = list(contenders(python, threads))
    for _, _, turn in everyone:
        turn()
    columns = [[] for _ in everyone]
    order, random = list(range(len(everyone))), Random(0)
    for _ in range(ROUNDS):
        random.shuffle(order)
        for i in order:
            sleep(PAUSE)
            columns[i].append(everyone[i][2]())
    own = {job: c for (name, job, _), c in zip(everyone, columns, strict=True) if name == "tsallax"}
    print("| | | ms, median (least) | tsallax = 1, median (quartiles) |\n|---|---|---|---|")
    for (name, job, _), column in sorted(
        zip(everyone, columns, strict=True), key=lambda x: list(CALLS).index(x[0][1])
    ):
        low, middle, high = quantiles([a / b for a, b in zip(column, own[job], strict=True)])
        ms = f"{1e3 * median(column):.1f} ({1e3 * min(column):.1f})"
        print(f"| {job} | {name} | {ms} | {middle:.2f} ({low:.2f} to {high:.2f}) |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--torch", metavar="PYTHON")
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve)
    else:
        main(arguments.threads, arguments.torch)
