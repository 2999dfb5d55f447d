"""A folder for one process at a time; the system drops the lock of one that died."""

import fcntl
import os
from pathlib import Path


class BusyError(FileExistsError):
    """Another process has the folder."""


def lock(path: Path) -> int:
    """The folder for this process alone, until the returned file is closed or the process ends."""
    number = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(number)
        if isinstance(error, BlockingIOError):
            raise BusyError(f"{path} is in use by another process") from None
        raise OSError(f"{path} cannot be locked, as a run's folder must be: {error}") from None
    return number


def is_unlocked(path: Path) -> bool:
    """Whether no process has the folder."""
    try:
        os.close(lock(path))
    except BusyError:
        return False
    return True
