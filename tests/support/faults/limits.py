"""A limit of memory and of time around what is called."""

import contextlib
import faulthandler
import resource
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType


class TimeIsUpError(BaseException):
    """It hangs: nothing catches this."""


@contextlib.contextmanager
def seconds(most: float) -> Iterator[None]:
    """An exception after so long, even in a system call; the end of the process if it is deaf."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeIsUpError(f"still busy after {most:g} s")

    old = signal.signal(signal.SIGALRM, stop)
    faulthandler.dump_traceback_later(3 * most, exit=True, file=sys.__stderr__)
    signal.setitimer(signal.ITIMER_REAL, most)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGALRM, old)


def address_space() -> int:
    """Bytes that this process has mapped."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


@contextlib.contextmanager
def memory(more: int) -> Iterator[None]:
    """No more than so many bytes beyond what is mapped now."""
    old = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (address_space() + more, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, old)
