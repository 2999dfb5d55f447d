"""Ctrl-C is answered at once, whatever the run is waiting for."""

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event, Timer

import pytest

from tsallax.training.compile_time import _note, _note_begin, compiling_for
from tsallax.training.interrupt import Interrupt

# As a compiler does, this computes outside of Python and cannot be interrupted: some seconds.
LONG = 5_000_000


def test_the_first_signal_asks_and_the_second_stops():
    told, before = Event(), signal.getsignal(signal.SIGINT)
    with Interrupt(told.set) as interrupt:
        assert not interrupt.asked
        os.kill(os.getpid(), signal.SIGTERM)
        assert interrupt.asked
        assert told.wait(60)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
    assert not interrupt.thread.is_alive()


def test_it_is_answered_while_python_waits():
    """The handler has to wait for the computation; the answer does not."""
    order = []
    with Interrupt(lambda: order.append("answered")) as interrupt:
        Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        hashlib.pbkdf2_hmac("sha256", b"a", b"b", LONG)
        order.append("computed")
        assert interrupt.asked
    assert order == ["answered", "computed"]


def test_the_second_signal_ends_a_process_that_cannot_listen():
    code = f"""
import hashlib, sys
from tsallax.training.interrupt import Interrupt
with Interrupt(lambda: print("told", flush=True), grace=0.1):
    print("begun", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"a", b"b", {400 * LONG})
"""
    own = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    child = subprocess.Popen([sys.executable, "-c", code], env=own, **pipes)
    assert child.stdout is not None
    assert child.stdout.readline() == "begun\n"
    child.send_signal(signal.SIGINT)
    assert child.stdout.readline() == "told\n"
    child.send_signal(signal.SIGINT)
    assert child.communicate() == ("", "tsallax: stopped\n")
    assert child.returncode == 130


def test_compiling_is_said_only_while_it_compiles():
    """A program inside another: it ends with the outer one."""
    event = "/jax/core/compile/backend_compile_duration"
    assert compiling_for() is None
    _note_begin(event, 0.0)
    _note_begin(event, 0.0)
    _note(event, 0.0)
    assert compiling_for() is not None
    _note_begin("/jax/other", 0.0)
    _note(event, 0.0)
    assert compiling_for() is None
    _note(event, 0.0)  # whose beginning was not told
    assert compiling_for() is None
