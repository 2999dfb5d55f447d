"""Where compiled programs are kept, and where not."""

import os

import jax
import pytest

from tsallax import _jaxlib as cache


@pytest.fixture
def settings(monkeypatch, tmp_path):
    found = {}
    monkeypatch.setattr(jax.config, "update", found.__setitem__)
    monkeypatch.delenv(cache.ENV, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return found


def test_a_private_folder_is_made_and_used(settings, tmp_path):
    path = cache.use_cache()
    assert path == tmp_path / "tsallax" / "programs"
    assert path.stat().st_mode & 0o777 == 0o700
    assert settings["jax_compilation_cache_dir"] == str(path)


def test_what_others_can_write_to_is_not_used(settings):
    cache.folder().mkdir(parents=True)
    cache.folder().chmod(0o777)
    assert cache.use_cache() is None
    assert not settings


def test_a_folder_that_others_can_replace_is_not_used(settings, tmp_path):
    """Who can write to the folder above can put another one in its place."""
    cache.folder().mkdir(parents=True, mode=0o700)
    tmp_path.chmod(0o777)
    assert cache.use_cache() is None
    assert not settings
    tmp_path.chmod(0o1777)  # sticky: entries are their owners'
    assert cache.use_cache() is not None


def test_folders_on_the_way_are_made_for_their_owner_alone(settings, tmp_path):
    old = os.umask(0o002)
    try:
        assert cache.use_cache() is not None
    finally:
        os.umask(old)
    assert (tmp_path / "tsallax").stat().st_mode & 0o777 == 0o700


def test_a_link_is_not_followed(settings, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    cache.folder().parent.mkdir()
    cache.folder().symlink_to(tmp_path / "elsewhere")
    assert cache.use_cache() is None
    assert not settings


def test_nothing_happens_where_none_can_be_made(settings, tmp_path):
    (tmp_path / "tsallax").write_text("a file in the way")
    assert cache.use_cache() is None
    assert not settings


def test_the_users_own_choice_is_left_alone(settings, monkeypatch):
    monkeypatch.setenv(cache.ENV, "elsewhere")
    assert cache.use_cache() is None
    assert not settings


class Files:
    """As jax's own cache: a file for each key, whose content nobody looks at."""

    def __init__(self, folder):
        self.folder = folder

    def get(self, key):
        path = self.folder / f"{key}-cache"
        return path.read_bytes() if path.exists() else None

    def put(self, key, program):
        (self.folder / f"{key}-cache").write_bytes(program)


def flipped(data):
    return data[:-1] + bytes([data[-1] ^ 1])


HARMS = {
    "another program": lambda good, other: other,
    "a program without a seal": lambda good, other: good[cache.SEAL :],
    "a flipped bit": lambda good, other: flipped(good),
    "cut off": lambda good, other: good[:-1],
    "a seal alone": lambda good, other: good[: cache.SEAL],
    "nothing": lambda good, other: b"",
}


@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS)
def test_a_program_is_taken_only_if_it_is_the_one_of_its_name(harm, tmp_path):
    """Two that had changed places computed something else, or ended in a traceback."""
    sealed, path = cache.Sealed(Files(tmp_path), tmp_path), tmp_path / "one-cache"
    sealed.put("one", b"first program")
    sealed.put("two", b"second program")
    assert (sealed.get("one"), sealed.get("two")) == (b"first program", b"second program")
    path.write_bytes(harm(path.read_bytes(), (tmp_path / "two-cache").read_bytes()))
    assert sealed.get("one") is None
    assert not path.exists()  # else jax would not store it again
    assert sealed.get("three") is None


def test_jax_takes_its_programs_from_there(monkeypatch, tmp_path):
    from jax._src import compilation_cache

    monkeypatch.setattr(compilation_cache, "get_file_cache", lambda path: (Files(path), path))
    cache.seal_programs()
    cache.seal_programs()  # by the next run of the same process
    made, path = compilation_cache.get_file_cache(str(tmp_path))
    assert isinstance(made, cache.Sealed)
    assert (type(made.files), path) == (Files, str(tmp_path))


def test_the_oldest_programs_go_first(tmp_path):
    for age, name in enumerate(("new", "middle", "old")):
        (tmp_path / name).write_bytes(bytes(100))
        os.utime(tmp_path / name, (1e9 - age, 1e9 - age))
    cache.prune(tmp_path, 200)
    assert {path.name for path in tmp_path.iterdir()} == {"new", "middle"}
    cache.prune(tmp_path, 200)
    assert len(list(tmp_path.iterdir())) == 2
