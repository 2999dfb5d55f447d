"""Compare jax versions: the doctor's checks and two speeds, each version in its own interpreter.

    python benchmarks/jax_versions.py PYTHON_OF_ONE_VENV PYTHON_OF_ANOTHER ...

An interpreter needs only jax, jaxlib and NumPy. The versions take short turns, one at a time, and
the best time of a round counts, so that other load affects all of them equally. The output is
Markdown.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from subprocess import PIPE, Popen
from time import perf_counter
from typing import Any

from tsallax._jaxlib import OVERRIDE, PINNED

ROUNDS = 3
TURNS = 20
SPEEDS = {  # name: seeds, width, batch
    "wide": (1, 512, 128),
    "small": (4, 64, 32),
}


def training(seeds: int, width: int, batch: int, steps: int = 200) -> Callable[[], object]:
    """`steps` updates of an MLP by SGD with momentum, `seeds` of them at once."""
    import jax
    import jax.numpy as jnp

    keys = jax.random.split(jax.random.key(0), 5)
    sizes = [(8, width), (width, width), (width, 4)]
    weights = [
        jax.random.normal(k, (seeds, n, m)) / n**0.5 for k, (n, m) in zip(keys, sizes, strict=False)
    ]
    x, y = jax.random.normal(keys[3], (batch, 8)), jax.random.normal(keys[4], (batch, 4))

    def loss(W):
        return jnp.mean((jax.nn.relu(jax.nn.relu(x @ W[0]) @ W[1]) @ W[2] - y) ** 2)

    def step(carry, _):
        W, momentum = carry
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, jax.grad(loss)(W))
        return (jax.tree.map(lambda w, m: w - 0.001 * m, W, momentum), momentum), None

    def one(W):
        zeros = jax.tree.map(jnp.zeros_like, W)
        return jax.lax.scan(step, (W, zeros), length=steps)[0]

    program = jax.jit(jax.vmap(one))
    return lambda: jax.block_until_ready(program(weights))


def child() -> None:
    """Answer each line of standard input with a line of JSON: the checks, or one timing."""
    import jax

    from tsallax.cli import compiler_checks as checks

    programs = {name: training(*shape) for name, shape in SPEEDS.items()}
    for program in programs.values():
        program()  # compiles
    print(json.dumps(jax.__version__), flush=True)
    for line in sys.stdin:
        word = line.strip()
        if word == "checks":
            answer = {check.name: checks.run(check) for check in checks.CHECKS}
        else:
            start = perf_counter()
            programs[word]()
            answer = perf_counter() - start
        print(json.dumps(answer), flush=True)


class Version:
    """One interpreter, kept alive and idle between its turns."""

    def __init__(self, python: str):
        source = Path(__file__).parents[1] / "src"
        env = os.environ | {OVERRIDE: "1", "PYTHONPATH": str(source)}
        arguments = [python, __file__, "--child"]
        self.process = Popen(arguments, env=env, stdin=PIPE, stdout=PIPE, text=True)
        self.number: str = self.answer()

    def answer(self) -> Any:
        assert self.process.stdout
        return json.loads(self.process.stdout.readline())

    def ask(self, word: str) -> Any:
        assert self.process.stdin
        print(word, file=self.process.stdin, flush=True)
        return self.answer()


def one_round(versions: list[Version]) -> dict[str, dict]:
    """The verdicts of every version, and its best time of many short turns."""
    result = {v.number: {"checks": v.ask("checks"), "seconds": {}} for v in versions}
    for name in SPEEDS:
        times = [[v.ask(name) for v in versions] for _ in range(TURNS)]
        for v, column in zip(versions, zip(*times, strict=True), strict=True):
            result[v.number]["seconds"][name] = min(column)
    return result


def table(rounds: list[dict[str, dict]]) -> str:
    """Checks that failed in any round, and speeds as the median (lowest to highest) ratio."""
    versions = list(rounds[0])
    lines = [["", *versions], ["---"] * (len(versions) + 1)]
    for check in rounds[0][versions[0]]["checks"]:
        runs = {v: [r[v]["checks"][check][0] for r in rounds] for v in versions}
        cells = [
            "ok" if all(runs[v]) else f"fails {runs[v].count(False)}/{ROUNDS}" for v in versions
        ]
        lines.append([check, *cells])
    for name in SPEEDS:
        cells = []
        for v in versions:
            ratios = [r[v]["seconds"][name] / r[PINNED]["seconds"][name] for r in rounds]
            cells.append(f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
        lines.append([f"time of the {name} network, {PINNED} = 1", *cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main(pythons: list[str]) -> None:
    versions = [Version(python) for python in pythons]
    rounds = [one_round(versions) for _ in range(ROUNDS)]
    print(table(rounds), end="\n\n")
    for version in versions:  # the details of the last round, in addition to the table
        print(f"- {version.number}")
        for check, (_, detail) in rounds[-1][version.number]["checks"].items():
            print(f"  - {check}: {detail}")
        print(f"  - seconds: {rounds[-1][version.number]['seconds']}")
        version.process.communicate()  # ends the process


if __name__ == "__main__":
    if sys.argv[1:] == ["--child"]:
        child()
    else:
        main(sys.argv[1:])
