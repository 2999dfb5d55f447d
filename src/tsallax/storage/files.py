"""Access to a folder and its files: the only module that opens, writes or removes them.

The folder is held open, and its entries are reached through its descriptor. An entry is opened only
if it is a regular file or, for a subfolder, a folder: never through a symbolic link, never a pipe
or a device, and for writing no file with a second name (a hard link). So whatever an untrusted
folder contains, nothing outside it is written or removed, nor read through a link. On a system
without such descriptors (Windows) each entry is checked by its path instead.

A folder can be locked, for one process at a time.
"""

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None
try:
    import msvcrt
except ImportError:
    msvcrt = None

BY_DESCRIPTOR = {os.open, os.mkdir, os.rename, os.stat, os.unlink} <= os.supports_dir_fd
NO_LINK = getattr(os, "O_NOFOLLOW", 0)
NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # opening a pipe must not block
BINARY = getattr(os, "O_BINARY", 0)
LOCK = ".lock"  # the file that is locked where a folder cannot be (Windows)


class Directory:
    """The entries of one folder, by their names.

    Args:
        path: the folder. It may itself be a link, as the user has named it.
        create: make it and its parents if they do not exist.
        parent: the open folder that contains it, for a subfolder.
    """

    def __init__(self, path: Path, create: bool = False, parent: "Directory | None" = None):
        self.path = path
        at = {"dir_fd": parent.descriptor} if parent and BY_DESCRIPTOR else {}
        target = path.name if at else path
        if create and parent is None:
            path.mkdir(parents=True, exist_ok=True)
        elif create:
            with contextlib.suppress(FileExistsError):
                os.mkdir(target, **at)  # noqa: PTH102 (Path has no descriptors)
        if parent and not stat.S_ISDIR(parent._status(path.name).st_mode):
            raise ValueError(f"{path.name} is not a folder")
        self.descriptor = -1
        self.lock_file: FileIO | None = None  # used where a folder cannot be locked itself
        if BY_DESCRIPTOR:
            no_link = NO_LINK if parent else 0
            self.descriptor = os.open(target, os.O_RDONLY | os.O_DIRECTORY | no_link, **at)
        elif not path.is_dir():
            raise NotADirectoryError(f"{path} is not a folder")

    def __enter__(self) -> "Directory":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self.lock_file is not None:
            self.lock_file.close()
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def names(self) -> list[str]:
        place = self.descriptor if BY_DESCRIPTOR else self.path
        return sorted(os.listdir(place))  # noqa: PTH208 (Path has no descriptors)

    def has(self, name: str) -> bool:
        """Returns whether there is an entry of this name, of any type."""
        try:
            self._status(name)
        except FileNotFoundError:
            return False
        return True

    def subfolder(self, name: str, create: bool = False) -> "Directory":
        """Open a folder inside this one; a link to a folder is refused."""
        return Directory(self.path / plain_name(name), create, self)

    def open(self, name: str) -> FileIO:
        """Open a regular file for reading."""
        return self._open(name, os.O_RDONLY, "rb")

    def read(self, name: str, limit: int) -> bytes:
        """Read a regular file, which must have at most `limit` bytes."""
        with self.open(name) as file:
            size = os.fstat(file.fileno()).st_size
            if size > limit:
                raise ValueError(f"{name} has {size:,} bytes; at most {limit:,} are read")
            return file.read(size)  # allocates a buffer of this size

    def create(self, name: str) -> FileIO:
        """Open a new file for writing; it must not exist."""
        return self._open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, "wb")

    def open_or_create(self, name: str) -> FileIO:
        """Open a file for reading and writing; it is created if it does not exist."""
        return self._open(name, os.O_RDWR | os.O_CREAT, "r+b")

    def append(self, name: str, data: bytes) -> None:
        """Append to a file, which is created if it does not exist."""
        with self.open_to_append(name) as file:
            write_all(file, data)

    def open_to_append(self, name: str) -> FileIO:
        """Open a file for appending; it is created if it does not exist."""
        return self._open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, "ab")

    @contextlib.contextmanager
    def replacing(self, name: str) -> Iterator[FileIO]:
        """A new file that replaces the old one once it is complete and synced to disk."""
        part = f"{plain_name(name)}.part"
        self.remove(part)
        with self.create(part) as file:
            yield file
            os.fsync(file.fileno())
        self.rename(part, name)

    def write(self, name: str, data: bytes) -> None:
        """Write a file atomically: a reader finds either the old or the new one."""
        with self.replacing(name) as file:
            write_all(file, data)

    def size(self, name: str) -> int:
        """The size of a regular file in bytes."""
        found = self._status(name)
        if not stat.S_ISREG(found.st_mode):
            raise ValueError(f"{name} is not a regular file")
        return found.st_size

    def truncate(self, name: str, size: int) -> None:
        with self._open(name, os.O_WRONLY, "wb") as file:
            os.ftruncate(file.fileno(), size)

    def sync(self, *names: str) -> None:
        """Sync these files to disk; without a name, the folder itself, if its disk can do that."""
        for name in names:
            # A file without write access cannot be synced on every system.
            with self._open(name, os.O_RDWR, "r+b") as file:
                os.fsync(file.fileno())
        if not names and BY_DESCRIPTOR:
            try:
                os.fsync(self.descriptor)
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # as network folders answer
                    raise

    def rename(self, old: str, new: str) -> None:
        old, new = plain_name(old), plain_name(new)
        if BY_DESCRIPTOR:
            os.replace(old, new, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)
        else:
            (self.path / old).replace(self.path / new)

    def remove(self, name: str) -> None:
        """Delete an entry if it exists, a folder with its contents; never follow a link."""
        if not self.has(name):
            return
        place, at = self._at(name)
        if not stat.S_ISDIR(self._status(name).st_mode):
            os.unlink(*place, **at)
        elif BY_DESCRIPTOR:
            shutil.rmtree(name, dir_fd=self.descriptor)
        else:
            shutil.rmtree(self.path / name)

    def _at(self, name: str) -> tuple[tuple[str | Path], dict[str, int]]:
        """The arguments that identify an entry in a function of `os`."""
        if BY_DESCRIPTOR:
            return (plain_name(name),), {"dir_fd": self.descriptor}
        return (self.path / plain_name(name),), {}

    def _status(self, name: str) -> os.stat_result:
        place, at = self._at(name)
        return os.stat(*place, follow_symlinks=False, **at)

    def _open(self, name: str, flags: int, mode: str) -> FileIO:
        place, at = self._at(name)
        if not NO_LINK and self.has(name) and not stat.S_ISREG(self._status(name).st_mode):
            raise ValueError(f"{name} is not a regular file")
        try:
            number = os.open(*place, flags | NO_LINK | NO_WAIT | BINARY, 0o666, **at)
        except FileNotFoundError:
            raise
        except OSError as error:
            if self.has(name) and not stat.S_ISREG(self._status(name).st_mode):
                raise ValueError(f"{name} is not a regular file") from None
            raise type(error)(error.errno, error.strerror, str(self.path / name)) from None
        found = os.fstat(number)
        shared = found.st_nlink > 1 and flags & (os.O_WRONLY | os.O_RDWR)
        if shared or not stat.S_ISREG(found.st_mode):
            os.close(number)
            why = "is a hard link, and not written through" if shared else "is not a regular file"
            raise ValueError(f"{name} {why}")
        return FileIO(number, mode)


def write_all(file: FileIO, data: bytes | memoryview) -> None:
    """Write all bytes, as one call of `write` may write only a part."""
    view = memoryview(data)
    while len(view):
        view = view[file.write(view) :]


def read_named(path: Path, limit: int) -> str:
    """Read a file named by the user: it may be a link, but must be regular and bounded in size."""
    try:
        real = path.resolve()
    except RuntimeError:  # before Python 3.13
        raise ValueError(f"{path} is a link to itself") from None
    try:
        with Directory(real.parent) as folder:
            return folder.read(real.name, limit).decode()
    except UnicodeDecodeError:
        raise ValueError(f"{path} is no text") from None


def write_named(path: Path, data: bytes, create: bool = False) -> None:
    """Write a file named by the user: a new one, or in the place of a file or of a link to one.

    What else bears the name stays: as root, a new file would take even the place of /dev/null.
    With `create`, folders on the way are made.
    """
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is not a regular file")
    with Directory(path.parent, create) as folder:
        folder.write(path.name, data)


def open_below(root: Path, *names: str) -> Directory:
    """Open a folder below one named by the user, made if necessary; links below it are refused."""
    folder = Directory(root, create=True)
    for name in names:
        with folder:
            folder = folder.subfolder(name, create=True)
    return folder


def plain_name(name: str) -> str:
    """Returns `name`; refuses one that could refer to something outside the folder."""
    if not name or name in (".", "..") or Path(name).name != name or "\0" in name:
        raise ValueError(f"{name!r} is not the name of a file")
    return name


class BusyError(FileExistsError):
    """Another process has locked the folder."""


def lock(folder: Directory) -> None:
    """Lock the folder for this process, until the folder is closed or the process ends.

    The lock is on the open folder itself, to which is written: if another process removes it and
    makes a new one of the same name, the two do not conflict. On Windows a file in it is locked; a
    system with neither kind of lock has no locking.
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
    """Returns whether no process has locked the folder. The lock is released at once."""
    try:
        lock(folder)
    except BusyError:
        return False
    if fcntl is not None:
        fcntl.flock(folder.descriptor, fcntl.LOCK_UN)
    elif folder.lock_file is not None:
        folder.lock_file.close()
    return True
