"""The outside check: the runs of both libraries, then the comparison.

    make outside-check

Everything runs on one core, at low priority. Finished runs are kept, ours in the table of the study
`readings`: the same command resumes.
"""

import subprocess
import sys
from pathlib import Path

import tyro

HERE = Path(__file__).resolve().parent
PEER = HERE.parent / ".peers/sb3/bin/python"


def main(out: Path = Path("runs/outside-check"), seeds: int = 5, core: int = 0) -> None:
    """Train inside Stable-Baselines3 and with tsallax, and compare: about an hour.

    Args:
        out: folder of the runs in Stable-Baselines3.
        seeds: number of seeds of each algorithm in each library.
        core: the core that everything is pinned to.
    """

    def run(*command: object) -> None:
        pinned = ["nice", "-n", "19", "taskset", "-c", str(core), *map(str, command)]
        if code := subprocess.run(pinned).returncode:
            sys.exit(code)  # the command has printed the reason

    run(PEER, HERE / "sb3_tal.py", "--out", out, "--seeds", seeds)
    part = ["--only", "choices=sb3", "q=2", "algo=tal,tsallis-dqn", "--seeds", seeds]
    run(sys.executable, "-m", "tsallax", "reproduce", "readings", *part)
    run(sys.executable, HERE / "compare.py", "--sb3", out)


if __name__ == "__main__":
    tyro.cli(main)
