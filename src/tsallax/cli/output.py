"""Standard output whose reader may go away, which must not stop the training."""

import errno
import io
import os
import stat
import sys
from typing import Any


class LastingOutput(io.FileIO):
    """Standard output whose reader may go away early: `tsallax train ... | head -1`."""

    def write(self, data: Any) -> int:
        """Write, or discard the data if nobody can read it, which must not stop the training."""
        try:
            return super().write(data)
        except OSError as error:
            # A terminal that was closed fails like a broken disk, which is to be reported.
            terminal = error.errno == errno.EIO and stat.S_ISCHR(os.fstat(self.fileno()).st_mode)
            if not (terminal or isinstance(error, BrokenPipeError)):
                raise
            return memoryview(data).nbytes


def lasting_output() -> None:
    """Replace standard output by a `LastingOutput`.

    Standard streams that are closed are opened to nowhere. Else the next files that are opened
    would have their numbers, and get what is written to them.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # has the lowest free number, which is this one
    old = sys.stdout or os.fdopen(1, "w", closefd=False)
    raw = LastingOutput(old.fileno(), "wb", closefd=False)
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(raw), old.encoding, old.errors, line_buffering=old.isatty()
    )
