"""A race: contenders are set up one after another, then take turns in every round."""

import json
import math
import os
import select
import sys
import time
from pathlib import Path
from random import Random
from subprocess import PIPE, Popen
from typing import Any

from contenders import Contender, Part, line_up

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PEERS = HERE.parent / ".peers"  # virtual environments and logs
PAUSE = 0.5  # seconds between turns: threads may spin for a while after their work
PATIENCE = 900.0  # timeout for an answer in seconds
SPINNING = 0.2  # seconds of work during a pause above which a warning is printed


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def environment(threads: int, **more: str) -> dict[str, str]:
    """The environment variables of a process that should use `threads` threads."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "XLA_", "PYTHON"))}
    platforms = os.environ.get("JAX_PLATFORMS", "cpu")
    return {**kept, **dict.fromkeys(names, str(threads)), "JAX_PLATFORMS": platforms, **more}


def pinned(cores: tuple[int, ...]) -> list[str]:
    return ["taskset", "-c", ",".join(map(str, cores))]


class Runner:
    """One process of a contender."""

    def __init__(self, contender: Contender, part: Part, work: str, buffer: int | None):
        python = PEERS / contender.peers / "bin/python" if contender.peers else sys.executable
        script = HERE / f"contend_{contender.script}.py"
        own = {} if contender.peers else {"PYTHONPATH": str(ROOT / "src")}
        PEERS.mkdir(exist_ok=True)
        self.log = PEERS / f"{contender.name.replace(' ', '-')}-{part.cores[0]}.log"
        command = [*pinned(part.cores), str(python), str(script), work, *part.options]
        with self.log.open("w") as log:
            self.process = Popen(
                [*command, *([f"--buffer={buffer}"] if buffer else [])],
                stdin=PIPE,
                stdout=PIPE,
                stderr=log,
                text=True,
                env=environment(len(part.cores), **own),
            )

    def ask(self, **question: object) -> None:
        assert self.process.stdin
        print(json.dumps(question), file=self.process.stdin, flush=True)

    def answer(self) -> dict[str, float]:
        out = self.process.stdout
        assert out
        ready, _, _ = select.select([out], [], [], PATIENCE)
        line = out.readline() if ready else ""
        if not line:
            raise RuntimeError("\n".join(["no answer", *self.log.read_text().splitlines()[-8:]]))
        return json.loads(line)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


class Team:
    """All processes of a contender, which run at the same time."""

    def __init__(self, contender: Contender, parts: list[Part], work: str, buffer: int | None):
        self.name = contender.name
        self.runners: list[Runner] = []
        try:
            self.runners = [Runner(contender, part, work, buffer) for part in parts]
            started = [runner.answer() for runner in self.runners]
        except BaseException:
            self.stop()
            raise
        self.pace = max(answer["pace"] for answer in started)
        self.found: dict[str, Any] = {
            "rates": [],
            "first_update": max(answer["ready"] for answer in started),
            "compile": max(answer["compile"] for answer in started),
        }

    def turn(self, seconds: float) -> None:
        """Take a turn; its rate is the steps of all processes over the time of the slowest one."""
        for runner in self.runners:
            runner.ask(go=math.ceil(self.pace * seconds))
        answers = [runner.answer() for runner in self.runners]
        if max(answer["idle"] for answer in answers) > SPINNING:
            say(f"{self.name} worked for {answers[0]['idle']:.1f} s while others had their turn")
        steps, slowest = (f(a[k] for a in answers) for f, k in ((sum, "steps"), (max, "seconds")))
        self.found["rates"].append(round(steps / slowest, 2))
        say(f"  {self.name}: {self.found['rates'][-1]:,.0f} steps/s")

    def end(self) -> dict[str, Any]:
        for runner in self.runners:
            runner.ask(end=True)
        size = sum(runner.answer()["bytes"] for runner in self.runners)
        own = {k: round(self.found[k], 2) for k in ("first_update", "compile")}
        return {**self.found, **own, "megabytes": round(size / 1e6)}

    def stop(self) -> None:
        for runner in self.runners:
            runner.stop()


def race(
    work: str,
    setting: str,
    cores: tuple[int, ...],
    repeats: int,
    seconds: float,
    buffer: int | None = None,
) -> dict[str, Any]:
    """The results of each contender of a work, by its name."""
    teams: list[Team] = []
    try:
        for contender, parts in line_up(work, setting, cores):
            say(f"{work}, {setting}: {contender.name} gets ready")
            try:
                teams.append(Team(contender, parts, work, buffer))
            except RuntimeError as error:
                say(f"{contender.name} is left out: {error}")
        order, random = teams.copy(), Random(0)
        for number in range(repeats):
            say(f"{work}, {setting}: round {number + 1} of {repeats}")
            random.shuffle(order)
            for team in order:
                time.sleep(PAUSE)
                team.turn(seconds)
        return {team.name: team.end() for team in teams}
    finally:
        for team in teams:
            team.stop()
