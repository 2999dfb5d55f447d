"""A folder from a stranger: nothing outside it is read, written or removed, whatever it holds."""

import errno
import os
import shutil
import socket
import stat
from io import FileIO

import pytest

from support import runs
from support.configs import paper
from support.outside import snapshot
from tsallax.storage import files
from tsallax.storage.files import BusyError, Directory, is_unlocked, lock, write_all, write_named


@pytest.fixture(params=["descriptors", "paths"])
def folder(request, tmp_path, monkeypatch):
    """As on Unix, and as on a system without descriptors of folders."""
    if request.param == "paths":
        monkeypatch.setattr(files, "BY_DESCRIPTOR", False)
        monkeypatch.setattr(files, "NO_LINK", 0)
    with Directory(tmp_path / "run", create=True) as found:
        yield found


def make_socket(path, outside):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))  # its whole path may be too long


def make_device(path, outside):
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))  # /dev/zero
    except PermissionError:
        pytest.skip("only root can make devices")


SPECIAL = {
    "a link to a file": lambda path, outside: path.symlink_to(outside / "file"),
    "a link to a folder": lambda path, outside: path.symlink_to(outside / "deep"),
    "a link to nothing": lambda path, outside: path.symlink_to(outside / "new"),
    "a link to itself": lambda path, outside: path.symlink_to(path.name),
    "a link to a device": lambda path, outside: path.symlink_to("/dev/zero"),
    "a pipe": lambda path, outside: os.mkfifo(path),
    "a socket": make_socket,
    "a device": make_device,
}
USES = {
    "open": lambda folder, name: folder.open(name),
    "read": lambda folder, name: folder.read(name, 100),
    "append": lambda folder, name: folder.append(name, b"harm"),
    "truncate": lambda folder, name: folder.truncate(name, 0),
    "size": lambda folder, name: folder.size(name),
    "sync": lambda folder, name: folder.sync(name),
}


@pytest.fixture(params=SPECIAL.values(), ids=SPECIAL)
def special(request, folder, outside):
    request.param(folder.path / "x", outside)
    return "x"


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_what_is_not_a_regular_file_is_refused(folder, special, use):
    with pytest.raises(ValueError, match="x is not a regular file"):
        use(folder, special)


def test_nothing_is_created_through_what_is_there(folder, special):
    with pytest.raises((ValueError, FileExistsError)):
        folder.create(special)


def test_a_folder_is_no_file(folder):
    (folder.path / "x").mkdir()
    for use in USES.values():
        with pytest.raises(ValueError, match="x is not a regular file"):
            use(folder, "x")


def test_it_is_not_a_folder_either(folder, special):
    for create in (False, True):
        with pytest.raises(ValueError, match="x is not a folder"):
            folder.subfolder(special, create)


def test_writing_takes_the_place_of_what_is_there(folder, special):
    folder.write(special, b"new")
    assert folder.read(special, 100) == b"new"
    assert folder.names() == ["x"]


def test_the_new_file_is_not_written_through_what_bears_its_first_name(folder, outside):
    """`x.part` is where a new `x` is written first."""
    for make in (SPECIAL["a link to a file"], SPECIAL["a link to a folder"], SPECIAL["a pipe"]):
        make(folder.path / "x.part", outside)
        folder.write("x", b"new")
        assert folder.names() == ["x"]
    assert folder.read("x", 100) == b"new"


def test_removing_never_follows_a_link(folder, special):
    folder.remove(special)
    assert folder.names() == []
    folder.remove(special)  # what is not there is no error


def test_removing_a_folder_does_not_follow_the_links_in_it(folder, outside):
    with folder.subfolder("x", create=True) as inner:
        SPECIAL["a link to a folder"](inner.path / "deep", outside)
        SPECIAL["a link to a file"](inner.path / "file", outside)
        SPECIAL["a pipe"](inner.path / "pipe", outside)
    folder.remove("x")
    assert folder.names() == []


@pytest.mark.parametrize("name", ["../outside/file", "deep/file", "/etc/hostname", "..", ".", ""])
def test_a_name_cannot_leave_the_folder(folder, outside, name):
    (folder.path / "deep").mkdir()
    (folder.path / "own").write_text("own")
    uses = [
        *(lambda n, use=use: use(folder, n) for use in USES.values()),
        folder.create,
        folder.has,
        folder.remove,
        folder.subfolder,
        lambda n: folder.subfolder(n, create=True),
        lambda n: folder.write(n, b"harm"),
        lambda n: folder.rename("own", n),
        lambda n: folder.rename(n, "new"),
    ]
    for use in uses:
        with pytest.raises(ValueError, match="is not the name of a file"):
            use(name)
    assert folder.names() == ["deep", "own"]


def test_a_folder_may_itself_be_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "named").symlink_to(tmp_path / "real")
    with Directory(tmp_path / "named", create=True) as folder:
        folder.write("x", b"own")
    assert (tmp_path / "real" / "x").read_bytes() == b"own"


def test_what_is_no_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "nowhere"):
        with pytest.raises(OSError, match=path.name):
            Directory(path)


def test_a_file_that_is_too_large_is_refused_before_it_is_read(folder):
    """A sparse file takes no room on the disk, but would in memory."""
    with (folder.path / "x").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ValueError, match="x has 1,099,511,627,776 bytes; at most 100 are read"):
        folder.read("x", 100)
    folder.truncate("x", 100)
    assert folder.read("x", 100) == bytes(100)


def test_a_file_that_is_not_there_is_said_as_such(folder):
    for use in (USES["open"], USES["read"], USES["truncate"], USES["size"], USES["sync"]):
        with pytest.raises(FileNotFoundError):
            use(folder, "x")
    assert not folder.has("x")


def test_appending_creates_and_adds(folder):
    folder.append("x", b"one,")
    folder.append("x", b"two")
    assert folder.read("x", 7) == b"one,two"
    assert folder.size("x") == 7


def test_a_reader_finds_the_old_file_or_the_new_one(folder):
    folder.write("x", b"old")
    with folder.replacing("x") as file:
        file.write(b"half")
        assert folder.read("x", 100) == b"old"
    assert folder.read("x", 100) == b"half"
    assert folder.names() == ["x"]


def test_a_write_that_fails_leaves_the_old_file_and_the_next_one_succeeds(folder):
    folder.write("x", b"old")

    def fail():
        with folder.replacing("x") as file:
            file.write(b"half")
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        fail()
    assert folder.read("x", 100) == b"old"
    folder.write("x", b"new")
    assert folder.read("x", 100) == b"new"
    assert folder.names() == ["x"]


@pytest.mark.parametrize("name", ["a pipe", "a socket", "a device", "a link to a device"])
def test_a_file_that_the_user_names_does_not_take_the_place_of_a_device(
    tmp_path, name, monkeypatch
):
    """`tsallax export RUN --out /dev/null` made a file of it, and broke the whole machine."""
    monkeypatch.chdir(tmp_path)
    SPECIAL[name](tmp_path / "x", tmp_path)
    before = (tmp_path / "x").lstat()
    with pytest.raises(ValueError, match="x is not a regular file"):
        write_named(tmp_path / "x", b"new")
    assert (tmp_path / "x").lstat() == before


def test_a_file_that_the_user_names_may_be_there_or_be_a_link_to_a_file(tmp_path, outside):
    (tmp_path / "x").symlink_to(outside / "file")
    for data in (b"new", b"newer"):
        write_named(tmp_path / "x", data)
        assert (tmp_path / "x").read_bytes() == data


def test_all_bytes_are_written_though_one_call_takes_only_some(tmp_path):
    class Slow(FileIO):
        def write(self, data):
            return super().write(bytes(data)[:3])

    with Slow(tmp_path / "x", "wb") as file:
        write_all(file, b"0123456789")
    assert (tmp_path / "x").read_bytes() == b"0123456789"


def test_a_folder_whose_disk_cannot_sync_folders_is_written_to(tmp_path, monkeypatch):
    """Some network folders refuse that; a disk that fails is another matter."""
    fsync, answers = os.fsync, [errno.EINVAL, errno.ENOTSUP, errno.EIO]

    def refuse(number):
        if stat.S_ISDIR(os.fstat(number).st_mode):
            raise OSError(answers.pop(0), "refused")
        fsync(number)

    monkeypatch.setattr(files.os, "fsync", refuse)
    with Directory(tmp_path) as folder:
        folder.write("x", b"own")
        folder.sync()
        folder.sync()
        with pytest.raises(OSError, match="refused"):
            folder.sync()


def test_a_folder_that_was_removed_and_made_again_is_another_one(tmp_path):
    """The old process, which still lives, cannot write into the new one's folder."""
    path, config = tmp_path / "run", paper("CartPole-v1", steps=10_000)
    old = runs.new_folder(path, config)
    shutil.rmtree(path)
    new = runs.new_folder(path, config)  # the lock of the old one is not in its way
    new.add_metrics(runs.metrics(1000, runs.np.ones(1)), None)
    before = snapshot(path)
    for write in (
        lambda: old.add_metrics(runs.metrics(2000, runs.np.zeros(1)), None),
        lambda: old.add_timing(2000, 1.0, 1.0),
        lambda: old.write("curves.png", b"old"),
        lambda: old.save_checkpoint(2000, {}, {}),
        lambda: old.close("done"),
    ):
        with pytest.raises(OSError, match="No such file"):
            write()
    assert snapshot(path) == before
    new.close("done")


def test_a_folder_that_was_moved_away_is_written_where_it_is(tmp_path):
    with Directory(tmp_path / "run", create=True) as old:
        (tmp_path / "run").rename(tmp_path / "moved")
        (tmp_path / "run").mkdir()
        old.write("x", b"own")
    assert [p.name for p in (tmp_path / "run").iterdir()] == []
    assert (tmp_path / "moved" / "x").read_bytes() == b"own"


def test_a_lock_is_the_folders_and_ends_with_it(tmp_path):
    with Directory(tmp_path) as first, Directory(tmp_path) as second:
        lock(first)
        assert not is_unlocked(second)
        with pytest.raises(BusyError, match="in use by another process"):
            lock(second)
        first.close()
        assert is_unlocked(second)
        lock(second)
