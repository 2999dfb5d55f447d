"""`make faults`: every kind of harm, each in a process of its own, and a table of what was done.

make faults                              all parts
make faults OPTIONS="kills sweeps"       some parts
make faults OPTIONS="hostile --share 0.1"    a tenth of each count
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

TESTS = Path(__file__).parents[2]
COMMANDS = (
    *("report", "watch", "play", "evaluate", "claims", "train --resume", "train --init-from"),
    *("agents", "tune", "export", "push", "pull"),
)
READERS = (
    *("checkpoint", "weights", "run.json", "metrics", "timing", "table of results"),
    *("about.json", "study", "preset", "space", "journal"),
)
COMPILED = ("replay", "MinAtar", "parts", "parallel", "discrete actor", "continuous actor")
HOST = ("host replay", "host parallel", "host actor")


class Task(NamedTuple):
    """A function of a module of this folder.

    Args:
        what: the row of the table.
        where: module and function.
        count: how often, or 0 for a function that knows by itself.
        first: its first argument, if it has one besides.
    """

    what: str
    where: str
    count: int = 0
    first: str = ""

    def run(self, share: float) -> str:
        module, function = self.where.split(".")
        call = getattr(import_module(f"support.faults.{module}"), function)
        arguments: list[Any] = [self.first] if self.first else []
        arguments += [max(1, round(share * self.count))] if self.count else []
        with tempfile.TemporaryDirectory() as root:
            return call(*arguments, root=Path(root))


PARTS = {
    "hostile": [Task(f"hostile folders: {x}", "hostile.attack", 5_000, x) for x in COMMANDS],
    "readers": [Task(f"damaged files: {x}", "readers.damaged", 9_100, x) for x in READERS],
    "fuzz": [
        Task("fuzzed command lines", "fuzz.commands", 10_000),
        Task("fuzzed studies", "fuzz.studies", 10_000),
    ],
    "disks": [
        Task("saves stopped at each file operation", "disks.saves"),
        *(Task(f"file operations that fail: {x}", "disks.operations", 0, x) for x in COMPILED),
        *(Task(f"file operations that fail: {x}", "disks.operations", 0, x) for x in HOST),
        Task("a disk that is really full", "kills.full_disk", 20),
    ],
    "kills": [
        *(Task(f"SIGKILL: {x}", "kills.kills", 34, x) for x in COMPILED),
        *(Task(f"SIGKILL: {x}", "kills.kills", 32, x) for x in HOST),
    ],
    "signals": [
        Task("SIGHUP", "kills.hangups", 10),
        Task("SIGSTOP and SIGCONT", "kills.stops", 30),
        Task("output that nobody reads", "kills.pipes", 10),
        Task("SIGINT while Python imports", "kills.interrupts", 30),
        Task("folders moved, removed, made anew under a live run", "kills.moved", 12),
    ],
    "sweeps": [
        Task("workers of a local sweep", "sweeps.on_this_machine", 25),
        Task("workers of a Ray cluster", "sweeps.on_ray", 25),
    ],
    "soak": [Task(f"memory: {x}", "soak.soak", 180, x) for x in (*COMPILED, *HOST)],
    "numbers": [
        Task("one seed of 8 poisoned", "numbers.poisoned_seed"),
        Task("cost of a checkpoint", "numbers.save_costs"),
    ],
}


def own_process(task: Task, share: float) -> tuple[Task, bool, str, float]:
    """What came of a task, whether it was survived, and the seconds that it took."""
    command = [sys.executable, "-m", "support.faults", "--only", task.what, "--share", str(share)]
    paths = os.pathsep.join(map(str, (TESTS.parent / "src", TESTS, TESTS / "support")))
    cache = os.environ.get("JAX_COMPILATION_CACHE_DIR", str(TESTS / ".faults_cache"))
    own = {"PYTHONPATH": paths, "TF_CPP_MIN_LOG_LEVEL": "3", "JAX_COMPILATION_CACHE_DIR": cache}
    own["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    begin = time.monotonic()
    done = subprocess.run(command, env={**os.environ, **own}, capture_output=True, text=True)
    survived = done.returncode == 0
    lines = (done.stdout if survived else done.stderr).strip().splitlines() or ["nothing was said"]
    if not survived:
        print(done.stderr[-3_000:], file=sys.stderr, flush=True)
    return task, survived, lines[-1][:100], time.monotonic() - begin


def table(tasks: list[Task], share: float) -> bool:
    """Do the tasks, two at a time; whether all were survived."""
    print(f"{'what was done':52} {'times':52} {'seconds':>7}", flush=True)
    with ThreadPoolExecutor(2) as pool:  # each waits for a process
        rows = pool.map(lambda task: own_process(task, share), tasks)
        found = []
        for task, survived, said, seconds in rows:
            words = said if survived else f"NOT SURVIVED: {said}"
            print(f"{task.what:52} {words:52} {seconds:7.0f}", flush=True)
            found.append(survived)
    print(f"{sum(found)} of {len(found)} survived")
    return all(found)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make faults", description=__doc__)
    parser.add_argument("parts", nargs="*", help=", ".join(PARTS))
    parser.add_argument("--share", type=float, default=1.0, help="of each count")
    parser.add_argument("--only", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"there is no part {sorted(unknown)}; there are {', '.join(PARTS)}")
    tasks = [task for name in given.parts or PARTS for task in PARTS[name]]
    if given.only:
        (task,) = (task for task in tasks if task.what == given.only)
        print(task.run(given.share))
        return 0
    return 0 if table(tasks, given.share) else 1


if __name__ == "__main__":
    sys.exit(main())
