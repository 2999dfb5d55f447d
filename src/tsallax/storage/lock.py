"""A folder for one process at a time; the system drops the lock of a process that died."""

from tsallax.storage.files import Directory

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None
try:
    import msvcrt
except ImportError:
    msvcrt = None

LOCK = ".lock"  # a file of its own, where a folder cannot be locked itself


class BusyError(FileExistsError):
    """Another process has the folder."""


def lock(folder: Directory) -> None:
    """Take the folder for this process, until the folder is closed or the process ends.

    What is locked is the open folder itself, the one that is written to: if another process removes
    it and makes a new one of the same name, the two do not meet. Windows locks a file in it, and a
    system that has neither kind of lock goes without.
    """
    try:
        if fcntl is not None:
            fcntl.flock(folder.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        elif msvcrt is not None:
            folder.lock_file = folder.open_or_create(LOCK)
            msvcrt.locking(folder.lock_file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except (BlockingIOError, PermissionError):
        raise BusyError(f"{folder.path} is in use by another process") from None
    except OSError as error:
        raise OSError(f"{folder.path} cannot be locked, as a run must be: {error}") from None


def is_unlocked(folder: Directory) -> bool:
    """Whether no process has the folder. The lock is dropped again at once."""
    try:
        lock(folder)
    except BusyError:
        return False
    if fcntl is not None:
        fcntl.flock(folder.descriptor, fcntl.LOCK_UN)
    elif folder.lock_file is not None:
        folder.lock_file.close()
    return True
