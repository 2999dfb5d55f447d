"""CleanRL's pqn.py, unchanged and with its own settings, until its printed returns reach the goal.

It does not evaluate: the mean of the last training episodes counts, exploration included.
"""

import re
import sys
from collections import deque
from pathlib import Path
from subprocess import PIPE, Popen
from tempfile import TemporaryDirectory

from tasks import Stopwatch, answer, attempt

EPISODES = 20
PRINTED = re.compile(r"global_step=(\d+), episodic_return=\[?([-+.\de]+)")


def printed_return(line: str) -> tuple[int, float] | None:
    """Step and return, if the line reports an episode."""
    found = PRINTED.match(line)
    return (int(found[1]), float(found[2])) if found else None


def main() -> None:
    asked, watch = attempt(), Stopwatch()
    script = Path(asked.checkout).resolve() / "cleanrl/pqn.py"
    step, mean, solved = 0, 0.0, False
    returns: deque[float] = deque(maxlen=EPISODES)
    with TemporaryDirectory() as folder:  # it writes its logs to the working directory
        command = [sys.executable, "-u", str(script), "--seed", str(asked.seed)]
        process = Popen(command, stdout=PIPE, text=True, cwd=folder)
        assert process.stdout
        for line in process.stdout:
            if episode := printed_return(line):
                step = episode[0]
                returns.append(episode[1])
                mean = sum(returns) / len(returns)
                solved = len(returns) == EPISODES and mean >= asked.task.goal
            if solved:
                break
        process.kill()
        process.wait()
    if not step:
        raise SystemExit(f"{script} printed no return")
    answer(solved, watch.seconds(), step, mean)


if __name__ == "__main__":
    main()
