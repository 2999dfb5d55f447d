"""Run folders of strangers and of older versions: read as far as they are whole, never followed."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import tsallax
from support import runs, tiny
from support.outside import snapshot
from tsallax import cli
from tsallax.storage import checkpoint
from tsallax.storage.files import Directory
from tsallax.storage.run_folder import read_about, status
from tsallax.training.build import make_run
from tsallax.training.config import to_json
from tsallax.training.driver import Silent, train_into
from tsallax.training.stored_config import read_run

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture(scope="module")
def stopped_once(tmp_path_factory):
    path = tmp_path_factory.mktemp("stopped") / "run"
    assert train_into(make_run(tiny.config()), path, Silent(), lambda: True).status == "stopped"
    return path


@pytest.fixture
def stopped(stopped_once, tmp_path):
    """A run that was stopped after its first period, with a checkpoint."""
    return shutil.copytree(stopped_once, tmp_path / "run")


def resume(path, capsys):
    code = cli.main(["train", "--resume", str(path)])
    out, error = capsys.readouterr()
    assert error.count("\n") == (code != 0)
    return code, out + error


# --- What is not the run's own --------------------------------------------------------------------


def test_a_stopped_run_is_resumed(stopped, capsys):
    assert status(stopped, to_json(tiny.config())) == "stopped"
    code, said = resume(stopped, capsys)
    assert code == 0
    assert "resumes from step 40" in said
    assert {p.name for p in stopped.iterdir()} == {
        "run.json", "metrics.csv", "timing.csv", "weights.safetensors", "best.safetensors",
        "curves.png", "checkpoints",
    }  # fmt: skip


def test_checkpoints_behind_a_link_are_not_read_written_or_removed(stopped, tmp_path, capsys):
    theirs = (stopped / "checkpoints").rename(tmp_path / "theirs")
    (stopped / "checkpoints").symlink_to(theirs)
    before = snapshot(theirs)
    code, said = resume(stopped, capsys)
    assert code == 2
    assert "checkpoints is not a folder" in said
    assert snapshot(theirs) == before


def test_a_checkpoint_behind_a_link_is_refused_and_only_the_link_is_removed(
    stopped, tmp_path, capsys
):
    (own,) = (stopped / "checkpoints").iterdir()
    theirs = own.rename(tmp_path / "theirs")
    own.symlink_to(theirs)
    before = snapshot(theirs)
    code, said = resume(stopped, capsys)
    assert code == 0
    assert "the run starts from the beginning" in said
    assert [p.name[-3:] for p in (stopped / "checkpoints").iterdir()] == ["120"]  # the last state
    assert snapshot(theirs) == before


def test_what_an_interrupted_save_left_is_removed_without_following_it(tmp_path, outside):
    with Directory(tmp_path / "run", create=True) as run:
        with run.subfolder("checkpoints", create=True) as root:
            (root.path / ".part-000000000001").symlink_to(outside / "deep")
            (root.path / ".old-step-000000000001").symlink_to(outside)
            (root.path / "step-000000000001").symlink_to(outside / "deep")
        for step in (1, 2, 3):
            checkpoint.save(run, step, {"x": np.zeros(3)}, {})
        assert checkpoint.newest_first(run) == ["step-000000000003", "step-000000000002"]
        run.remove(checkpoint.FOLDER)
        assert run.names() == []


PARTS = [
    *("run.json.part", "curves.png", "curves.png.part"),
    *("weights.safetensors", "best.safetensors"),
]


@pytest.mark.parametrize("name", [*PARTS, "weights.safetensors.part"])
def test_what_is_written_takes_the_place_of_a_link(stopped, outside, name, capsys):
    (stopped / name).unlink(missing_ok=True)
    (stopped / name).symlink_to(outside / "file")
    assert resume(stopped, capsys)[0] == 0
    assert not (stopped / name).is_symlink()


@pytest.mark.parametrize("name", ["metrics.csv", "timing.csv", "run.json"])
@pytest.mark.parametrize("special", ["link", "pipe"])
def test_what_is_read_or_appended_to_must_be_a_file(stopped, tmp_path, name, special, capsys):
    theirs = (stopped / name).rename(tmp_path / "theirs")
    if special == "link":
        (stopped / name).symlink_to(theirs)
    else:
        os.mkfifo(stopped / name)
    before = theirs.read_bytes()
    code, said = resume(stopped, capsys)
    assert code == 2
    assert "is not a regular file" in said or "has a damaged run.json" in said
    assert theirs.read_bytes() == before


# --- run.json -------------------------------------------------------------------------------------


def test_a_key_that_is_there_twice_is_damage(finished, tmp_path, capsys):
    """Readers do not agree on which of the two counts."""
    path = shutil.copytree(finished, tmp_path / "run")
    text = (path / "run.json").read_text()
    for once, twice in (
        ('"status": "done"', '"status": "failed",\n  "status": "done"'),
        ('"batch": 8', '"batch": 16, "batch": 8'),
    ):
        assert once in text
        (path / "run.json").write_text(text.replace(once, twice))
        with pytest.raises(ValueError, match=r"has a damaged run\.json"):
            read_about(path)
        assert cli.main(["evaluate", str(path)]) == 2
        assert "damaged run.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    "change",
    [{"stopped": "x"}, {"stopped": {"0": 1}}, {"versions": []}, {"versions": {"jax": None}}],
)
def test_versions_and_reasons_are_texts(finished, tmp_path, change):
    """A sweep collects them from run folders: what is no text ended it with a traceback."""
    path = shutil.copytree(finished, tmp_path / "run")
    about = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps(about | change))
    with pytest.raises(ValueError, match=r"has a damaged run\.json"):
        read_about(path)


def test_a_run_json_without_end_is_not_read(tmp_path):
    with (tmp_path / "run.json").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ValueError, match=r"has a damaged run\.json"):
        read_about(tmp_path)


# --- Older versions -------------------------------------------------------------------------------


@pytest.fixture
def schema_2(tmp_path):
    """Of tsallax 0.1: see tests/golden/make_schema2_run.py."""
    return shutil.copytree(GOLDEN / "schema2-run", tmp_path / "old")


def test_a_configuration_of_schema_2_is_that_of_today(schema_2):
    config, about = read_run(schema_2)
    assert about.schema == 2
    assert config == tiny.config(time_limit=None)
    assert (config.k, config.log_weight, config.entropy) == (None, None, (0.0,))


def test_the_weights_of_schema_2_are_loaded(schema_2):
    told = json.loads((GOLDEN / "schema2_run.json").read_text())
    states = np.array(told["states"], np.float32)
    for cell, (Q, pi) in enumerate(told["cells"]):
        found = tsallax.load(schema_2, cell).policy(states)
        np.testing.assert_allclose(found[0], Q, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found[1], pi, rtol=1e-5, atol=1e-6)


def test_a_run_of_schema_2_is_evaluated_and_reported(schema_2, capsys):
    assert cli.main(["evaluate", str(schema_2), "--episodes", "2"]) == 0
    out = capsys.readouterr().out
    assert "seed 1 q=3: 9.5 +- 0.5" in out
    assert "all: 9.5 over 8 episodes" in out
    found = runs.shown(schema_2)
    assert found["problems"] == []
    assert [len(s["curves"]) for s in found["sets"]] == [2]
    assert cli.main(["watch", str(schema_2)]) == 0
    assert "120 / 120 steps" in capsys.readouterr().out


def test_a_run_of_schema_2_is_not_written_to(schema_2, capsys):
    before = snapshot(schema_2)
    assert cli.main(["train", "--resume", str(schema_2)]) == 2
    assert "has no state to continue from" in capsys.readouterr().err
    assert snapshot(schema_2) == before
