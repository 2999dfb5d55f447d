"""The process of the `tsallax` command, before anything else is imported.

How often garbage is collected, and what Ctrl-C does: Python's own answer to that is an exception.
In the middle of an import it does harm, and in a callback of the garbage collector it is lost.
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
COLLECTING = "_xla_gc_callback"  # jax's, called by the garbage collector: what it raises is dropped
AGAIN = 0.01  # seconds


def is_command() -> bool:
    """Whether this process is the `tsallax` command, by its script or by `python -m tsallax`.

    The command calls `guard` itself, after it has read its arguments: importing its own package
    must not fail, or `tsallax doctor` could not explain what is wrong.
    """
    script = sys.argv[0] if sys.argv else ""
    if script == "-m":  # so named while Python still looks for the module to run
        return "tsallax" in sys.orig_argv
    return os.path.splitext(os.path.basename(script))[0] == "tsallax"  # noqa: PTH119, PTH122


def collect_rarely() -> None:
    """Importing and tracing make objects by the hundred thousand, most of which stay.

    By Python's own threshold the garbage collector looks at all of them again and again.
    """
    gc.set_threshold(100_000)


def listen() -> None:
    """Answer SIGINT from now on, unless it is ignored, as by `nohup`."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)


def _stop(_: int, frame: FrameType | None) -> None:
    """An exception; the end at once in the middle of an import, of which half may crash."""
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
