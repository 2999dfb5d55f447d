"""The `tsallax` command as a process of its own, to be killed, stopped and cut off."""

import contextlib
import io
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import BinaryIO

import numpy as np

SUPPORT = Path(__file__).parents[1]
KEPT = ("metrics.csv", "weights.safetensors", "curves.png")


def command(arguments: list[str], out: Path) -> list[str]:
    return [sys.executable, "-m", "tsallax", "train", *arguments, "--out", str(out)]


def environment(cache: Path) -> dict[str, str]:
    """A user's, with a cache of compiled programs so that a start takes seconds."""
    paths = [SUPPORT, SUPPORT.parent, SUPPORT.parents[1] / "src"]
    own = {"JAX_COMPILATION_CACHE_DIR": str(cache), "PYTHONPATH": os.pathsep.join(map(str, paths))}
    own["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    return {name: x for name, x in os.environ.items() if name != "XLA_FLAGS"} | own


def finish(arguments: list[str], out: Path, cache: Path) -> bytes:
    """Run to the end, in a new process; return what it printed."""
    done = subprocess.run(command(arguments, out), env=environment(cache), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()[-500:]
    return done.stdout


class Child:
    """A fork of this process, in which everything is imported but jax has not begun.

    An interpreter that starts anew takes seconds, most of them to import.

    Args:
        words: the command line after `tsallax`.
        log: where its output goes.
        out: standard output, if that is another place.
    """

    def __init__(self, words: list[str], log: Path, out: BinaryIO | None = None):
        self.code: int | None = None
        self.pid = os.fork()
        if self.pid:
            return
        code = 1
        try:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            with log.open("ab") as said:
                os.dup2(said.fileno() if out is None else out.fileno(), 1)
                os.dup2(said.fileno(), 2)
            sys.argv[1:] = words
            from tsallax import _process, cli

            _process.listen()
            code = cli.main()
            sys.stdout.flush()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)

    def wait(self, seconds: float = 300.0) -> int | None:
        """The exit code, negative for a signal; None if it still runs."""
        end = time.monotonic() + seconds
        while self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > end:
                return None
            else:
                time.sleep(0.002)
        return self.code

    def send(self, number: int) -> None:
        if self.code is None:
            os.kill(self.pid, number)

    def end(self, number: int = signal.SIGKILL) -> int:
        """Send it a signal that it does not survive, and wait."""
        self.send(number)
        code = self.wait()
        assert code is not None, f"it survived signal {number}"
        return code


def warm() -> None:
    """Import what a run needs. No program may run here: jax's threads do not survive a fork."""
    from tsallax.cli import main

    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
        main(["train", "--help-all"])
    import matplotlib.backends.backend_agg  # noqa: F401

    import tsallax.report.curves
    import tsallax.training.build_host
    import tsallax.training.driver  # noqa: F401


def train(words: list[str], out: Path, log: Path) -> Child:
    return Child(["train", *words, "--out", str(out)], log)


def complete(words: list[str], out: Path, log: Path) -> float:
    """Run to the end; return how many seconds it took."""
    begin = time.monotonic()
    code = train(words, out, log).wait()
    assert code == 0, f"exit code {code}: {log.read_text()[-500:]}"
    return time.monotonic() - begin


class Reference:
    """A run that nothing happened to, and what another one must be equal to.

    Args:
        words: of the command line.
        root: a folder for it and for others.
        exact: whether it is resumed to the bit.
    """

    def __init__(self, words: list[str], root: Path, exact: bool = True):
        warm()
        self.words, self.root, self.exact = words, root, exact
        self.out, self.log, self.whole = root / "run", root / "log", root / "whole"
        complete(words, self.whole, self.log)
        self.seconds = complete(words, self.out, self.log)  # its programs are cached by now
        shutil.rmtree(self.out)

    def train(self) -> Child:
        return train(self.words, self.out, self.log)

    def check_finished(self) -> None:
        """Finish the run, if it is not, and compare it; then it is removed."""
        complete(self.words, self.out, self.log)
        self.compare()
        shutil.rmtree(self.out)

    def compare(self) -> None:
        if not self.exact:
            check_rows(self.out, self.whole)
            return
        for name in KEPT:
            same = (self.out / name).read_bytes() == (self.whole / name).read_bytes()
            assert same, f"another {name}"


def check_rows(out: Path, whole: Path) -> None:
    """The same periods, each once; counters that only grow; nothing that is not finite."""
    rows, wanted = (
        np.genfromtxt(path / "metrics.csv", delimiter=",", names=True) for path in (out, whole)
    )
    np.testing.assert_array_equal(rows["step"], wanted["step"])
    np.testing.assert_array_equal(rows["seed"], wanted["seed"])
    assert np.isfinite(rows["loss"][rows["step"] > 80]).all()
    assert (rows["diverged"] == -1).all()
