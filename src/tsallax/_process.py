"""Sets up the process of the `tsallax` command, before anything else is imported.

It sets how often garbage is collected, and what Ctrl-C does: Python raises an exception, which
does harm in the middle of an import, and is lost in a callback of the garbage collector.
"""

import _thread
import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType

IMPORTING = "<frozen importlib._bootstrap>"
COLLECTING = "_xla_gc_callback"  # jax's callback in the garbage collector, which drops exceptions
AGAIN = 0.01  # seconds until the interrupt is repeated


def is_command() -> bool:
    """Returns whether this process is the `tsallax` command or `python -m tsallax`.

    The command calls `guard` itself, after it has parsed its arguments: importing its package must
    not fail, or `tsallax doctor` could not explain what is wrong.
    """
    script = sys.argv[0] if sys.argv else ""
    if script == "-m":  # the name while Python is still looking for the module to run
        return "tsallax" in sys.orig_argv
    return os.path.splitext(os.path.basename(script))[0] == "tsallax"  # noqa: PTH119, PTH122


def collect_rarely() -> None:
    """Raise the threshold of the garbage collector.

    Importing and tracing create hundreds of thousands of objects, most of which stay alive. With
    Python's own threshold the garbage collector traverses all of them repeatedly.
    """
    gc.set_threshold(100_000)


def listen() -> None:
    """Handle SIGINT from now on, unless it is ignored, as by `nohup`."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)


def _stop(_: int, frame: FrameType | None) -> None:
    """Raise `KeyboardInterrupt`; in the middle of an import, which it could break, exit at once."""
    places = [(at.f_code.co_filename, at.f_code.co_name) for at in _callers(frame)]
    if any(file == IMPORTING for file, _ in places):
        os.write(2, b"tsallax: stopped\n")
        os._exit(130)
    if any(name == COLLECTING for _, name in places):
        threading.Timer(AGAIN, _thread.interrupt_main).start()
        return
    raise KeyboardInterrupt


def _callers(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
