"""The time to solve: processor time from the start until an agent reaches a return.

All contenders use the same core, one at a time, in a random order for each seed.
"""

import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from subprocess import PIPE, Popen
from tempfile import TemporaryDirectory
from typing import Any

from race import HERE, PEERS, ROOT, environment, pinned, say
from solvers import SOLVERS, Solver
from tasks import TASKS

Checkouts = dict[str, Path | None]
Found = dict[str, list[dict[str, Any]]]  # by the contender's name, one entry per seed
SLACK = 2  # times the limit after which a contender is killed, as evaluations do not count


def solve(
    name: str,
    core: int,
    repeats: int,
    checkouts: Checkouts,
    keep: Callable[[Found], object],
    limit: float | None = None,
) -> Found:
    """The attempts of each contender of a task, for the seeds 0, 1, ...

    Args:
        name: the name of the task.
        core: the core that all contenders are pinned to.
        repeats: number of seeds.
        checkouts: the code of contenders that are not packages; without it they are left out.
        keep: called with the results so far, after each attempt.
        limit: limit of processor time in seconds, instead of the task's own.
    """
    there = [s for s in SOLVERS if name in s.tasks and _is_there(s, checkouts)]
    found: Found = {}
    random = Random(0)
    for seed in range(repeats):
        random.shuffle(there)
        for solver in there.copy():
            try:
                for run, ended in _runs(solver, name, seed, core, checkouts, limit):
                    found.setdefault(run, []).append(ended)
            except RuntimeError as error:
                say(f"{solver.name} is left out: {error}")
                there.remove(solver)
            keep(found)
    return found


def _runs(
    solver: Solver, name: str, seed: int, core: int, checkouts: Checkouts, limit: float | None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Run an attempt, and a second one that finds the cached programs of the first one."""
    with TemporaryDirectory() as cache:
        for run in filter(None, (solver.name, solver.again)):
            say(f"{name}, seed {seed}: {run}")
            ended = once(solver, name, seed, core, Path(cache), checkouts, limit)
            say(f"  {ended}")
            yield run, {"seed": seed, **ended}


def _is_there(solver: Solver, checkouts: Checkouts) -> bool:
    if solver.checkout and not checkouts.get(solver.checkout):
        say(f"{solver.name} is left out: --{solver.checkout} tells where its code is")
        return False
    if solver.peers and not (PEERS / solver.peers / "bin/python").exists():
        say(f"{solver.name} is left out: `make {PEERS.relative_to(ROOT)}/{solver.peers}/.ready`")
        return False
    return True


def once(
    solver: Solver,
    name: str,
    seed: int,
    core: int,
    cache: Path,
    checkouts: Checkouts,
    limit: float | None,
) -> dict[str, Any]:
    """Run one attempt and return its result."""
    limit = TASKS[name].limit if limit is None else limit
    python = PEERS / solver.peers / "bin/python" if solver.peers else Path(sys.executable)
    own = {} if solver.peers else {"PYTHONPATH": str(ROOT / "src"), "XDG_CACHE_HOME": str(cache)}
    command = [*pinned((core,)), str(python), str(HERE / f"solve_{solver.script}.py"), name]
    command += [f"--seed={seed}", f"--limit={limit}"]
    if solver.checkout:
        command.append(f"--checkout={checkouts[solver.checkout]}")
    log = PEERS / f"solve-{solver.script}.log"
    with log.open("w") as told:
        process = Popen(
            command,
            stdout=PIPE,
            stderr=told,
            text=True,
            env=environment(1, **own),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, 2 * (int(SLACK * limit),)),
            start_new_session=True,  # so that its child process is killed with it
        )
        try:
            out, _ = process.communicate()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
    if process.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        out = json.dumps({"solved": False, "seconds": limit, "steps": 0, "return": 0.0})
    return last_line(out, log, limit)


def last_line(out: str, log: Path, limit: float) -> dict[str, Any]:
    """The contender's answer; not solved if it took longer than the limit."""
    lines = out.strip().splitlines()
    if not lines or not lines[-1].startswith("{"):
        told = "\n".join(log.read_text().splitlines()[-8:])
        raise RuntimeError(f"no answer\n{told}")
    ended = json.loads(lines[-1])
    return {**ended, "solved": ended["solved"] and ended["seconds"] <= limit, "limit": limit}
