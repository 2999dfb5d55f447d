"""The outside check: the runs of both libraries, then the comparison.

    make outside-check

Everything runs on one core, at low priority. Finished runs are kept: the same command resumes.
"""

import subprocess
import sys
from pathlib import Path

import tyro

HERE = Path(__file__).resolve().parent
PEER = HERE.parent / ".peers/sb3/bin/python"


def main(out: Path = Path("runs/outside-check"), seeds: int = 5, core: int = 0) -> None:
    """Train inside Stable-Baselines3 and with tsallax, and compare: about two hours.

    Args:
        out: folder of the runs.
        seeds: number of seeds of each algorithm in each library.
        core: the core that everything is pinned to.
    """

    def run(*command: object) -> None:
        pinned = ["nice", "-n", "19", "taskset", "-c", str(core), *map(str, command)]
        if code := subprocess.run(pinned).returncode:
            sys.exit(code)  # the command has printed the reason

    run(PEER, HERE / "sb3_tal.py", "--out", out / "sb3", "--seeds", seeds)
    folders = {algo: out / f"tsallax-{algo}" for algo in ("tal", "tsallis-dqn")}
    for algo, folder in folders.items():
        train = [sys.executable, "-m", "tsallax", "train"]
        if (folder / "run.json").exists():
            run(*train, "--resume", folder)
        else:
            setting = [
                "--preset",
                "paper",
                "--choices",
                "sb3",
                "--steps",
                150_000,
                "--seeds",
                seeds,
            ]
            run(*train, "CartPole-v1", "--algo", algo, *setting, "--out", folder)
    given = [word for algo, folder in folders.items() for word in (f"--{algo}", folder)]
    run(sys.executable, HERE / "compare.py", "--sb3", out / "sb3", *given)


if __name__ == "__main__":
    tyro.cli(main)
