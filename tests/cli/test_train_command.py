"""The command line as a user meets it: one tiny run, looked at from all sides."""

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from support import runs, tiny
from support.configs import paper
from tsallax import cli
from tsallax.cli import one_line
from tsallax.cli.display import Display
from tsallax.learners import Metrics, Period
from tsallax.report.curves import read_curves, smooth
from tsallax.storage import run_folder
from tsallax.storage.run_folder import RunFolder, read_about
from tsallax.training.build import make_run
from tsallax.training.driver import Progress
from tsallax.training.stored_config import load_weights, read_run

TINY = tiny.flags(steps=118, q=(1.5, math.inf))  # in blocks of C: 120 steps


def run(path, *more, env="CartPole-v1"):
    return cli.main(["train", env, *TINY, "--out", str(path), *more])


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "first"
    assert run(path) == 0
    return path


def test_run_folder(finished):
    names = {p.name for p in finished.iterdir()}
    weights = {"weights.safetensors", "best.safetensors"}
    tables = {"metrics.csv", "timing.csv"}
    assert names == {"run.json", "curves.png", "checkpoints", *tables, *weights}
    assert [p.name for p in (finished / "checkpoints").iterdir()] == ["step-000000000120"]
    about = json.loads((finished / "run.json").read_text())
    assert about["status"] == "done"
    assert about["versions"].keys() >= {"tsallax", "python", "jax", "jaxlib", "numpy", "optax"}
    assert about["config"]["steps"] == 120
    assert about["config"]["target_period"] == 40
    assert [(c["q"], c["seed"]) for c in about["cells"]] == [
        (1.5, 0), (1.5, 1), ("inf", 0), ("inf", 1),
    ]  # fmt: skip


def test_metrics_are_tidy(finished):
    table = pd.read_csv(finished / "metrics.csv")
    assert list(table) == ["seed", "q", *Metrics._fields, "eval_return"]
    assert len(table) == 3 * 4
    assert sorted(table.step.unique()) == [40, 80, 120]
    assert table.loc[table.step.isin([80, 120]), "eval_return"].notna().all()
    assert table.loc[table.step == 40, "eval_return"].isna().all()
    assert (
        np.isfinite(table.drop(columns=["q", "episode_return", "episode_length", "eval_return"]))
        .all()
        .all()
    )
    assert (table.episodes * table.episode_length.fillna(0)).groupby(
        [table.q, table.seed]
    ).sum().max() <= 120


def test_the_same_command_gives_the_same_bits(finished, tmp_path, capsys):
    assert run(tmp_path / "again") == 0
    table = pd.read_csv(finished / "metrics.csv")
    last = table.loc[table.step == 120, "eval_return"].mean()
    assert f"evaluation: return {last:.1f} over 8 episodes" in capsys.readouterr().out
    for name in ("metrics.csv", "weights.safetensors"):
        assert (tmp_path / "again" / name).read_bytes() == (finished / name).read_bytes()
    assert run(tmp_path / "other", "--first-seed", "7") == 0
    other = (tmp_path / "other" / "weights.safetensors").read_bytes()
    assert other != (finished / "weights.safetensors").read_bytes()


def test_evaluate(finished, capsys):
    assert cli.main(["evaluate", str(finished), "--episodes", "2"]) == 0
    out = capsys.readouterr().out
    assert "seed 1 q=1.5: " in out
    assert "over 8 episodes" in out
    assert cli.main(["evaluate", str(finished / "nothing")]) == 2
    assert "there is no folder" in capsys.readouterr().err


def test_weights_must_be_those_of_the_run(finished, tmp_path):
    copy = Path(shutil.copytree(finished, tmp_path / "copy"))
    config, about = read_run(copy)
    like = make_run(config).learner.params()
    load_weights(copy, about, like)
    with pytest.raises(ValueError, match="were expected"):
        load_weights(copy, about, [np.zeros((3, 3))])
    with pytest.raises(ValueError, match="has no weights"):
        load_weights(copy, about._replace(everything={**about.everything, "files": {}}), like)
    stored = copy / "weights.safetensors"
    data = bytearray(stored.read_bytes())
    data[-1] ^= 1
    stored.write_bytes(data)
    with pytest.raises(ValueError, match="sha256 does not agree"):
        load_weights(copy, about, like)


@pytest.mark.parametrize("versions", [{"tsallax": "9.9"}, {}, None])
def test_a_folder_of_another_version_is_refused(finished, tmp_path, capsys, versions):
    (tmp_path / "other").mkdir()
    about = json.loads((finished / "run.json").read_text())
    text = json.dumps({**about, "schema": 99, "versions": versions})
    (tmp_path / "other" / "run.json").write_text(text)
    assert cli.main(["evaluate", str(tmp_path / "other")]) == 2
    error = capsys.readouterr().err
    assert "has schema 99" in error
    assert "reads 2, 3" in error
    assert ("for tsallax 9.9" in error) == bool(versions)


def test_list_names_everything(capsys):
    assert cli.main(["list"]) == 0
    out = capsys.readouterr().out
    words = ("tal", "mt-dqn-qlog", "[alpha ln pi(a)]", "CartPole-v1", "ALE/Pong-v5")
    for word in (*words, "gym", "minatar", "atari", "sb3"):
        assert word in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["Cartpole-v1"], "did you mean 'CartPole-v1'"),
        (["CartPole-v1", "--algo", "tall"], "did you mean 'tal'"),
        (["CartPole-v1", "--alpha", "-1"], "alpha must be positive, not -1"),
        (["CartPole-v1", "--preset", "paper", "--steps", "64"], "64 steps make no update"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(arguments, message, tmp_path, capsys):
    assert cli.main(["train", *arguments, "--out", str(tmp_path / "x")]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "x").exists()


def test_text_from_outside_is_shown_on_one_line_without_control_characters(capsys):
    bad = "\x1b[2J\nCart[red]Pole"
    assert one_line(ValueError(bad)) == "\\x1b[2J\\nCart[red]Pole"
    assert cli.main(["evaluate", bad]) == 2
    assert capsys.readouterr().err == "tsallax: there is no folder \\x1b[2J\\nCart[red]Pole\n"
    with Display("\x1b]0;title\x07 [red]", ["seed 0"], 10) as show:
        metrics = Metrics(*(np.zeros(1) for _ in Metrics._fields))
        failed = {0: "stopped: \x1b[31mred\nnext"}
        show(Progress(Period(10, None, None, metrics, failed), None, 0.0))
    shown = capsys.readouterr().out
    assert "\\x1b]0;title\\x07 [red]" in shown
    assert "seed 0: stopped: \\x1b[31mred\\nnext" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize("options", [["--seeds", "9"], ["--out", "elsewhere"]])
def test_a_resumed_run_takes_no_other_options(options, finished, capsys):
    assert cli.main(["train", "--resume", str(finished), *options]) == 2
    assert "a resumed run has its own" in capsys.readouterr().err


def test_ctrl_c_is_one_word(finished, capsys, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("tsallax.training.stored_config.read_run", interrupted)
    assert cli.main(["train", "--resume", str(finished)]) == 130
    assert capsys.readouterr().err == "tsallax: stopped\n"


def test_folder_in_use_is_left_alone(finished, capsys):
    before = (finished / "run.json").read_bytes()
    assert run(finished, "--first-seed", "7") == 2
    assert "is not empty" in capsys.readouterr().err
    assert run(finished) == 0
    assert "is done" in capsys.readouterr().out
    assert (finished / "run.json").read_bytes() == before


def test_unwritable_and_full_disks(tmp_path, capsys, monkeypatch):
    (tmp_path / "file").write_text("")
    assert run(tmp_path / "file" / "run") == 2
    assert capsys.readouterr().err.count("\n") == 1

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RunFolder, "save_weights", full)
    assert run(tmp_path / "full") == 2
    assert "No space left on device" in capsys.readouterr().err
    about = json.loads((tmp_path / "full" / "run.json").read_text())
    assert about["status"] == "failed"


def test_a_run_is_done_though_its_checkpoints_cannot_be_removed(tmp_path, monkeypatch):
    def refuse(folder, name):
        if name == run_folder.checkpoint.FOLDER:
            raise OSError(5, "Input/output error")
        remove(folder, name)

    remove = run_folder.Directory.remove
    monkeypatch.setattr(run_folder.Directory, "remove", refuse)
    runs.new_folder(tmp_path / "run", paper("CartPole-v1")).close("done")
    assert read_about(tmp_path / "run").status == "done"


def test_curves_skip_holes(tmp_path):
    rows = [(0, 10, "1.0"), (1, 10, "3.0"), (0, 20, ""), (1, 20, "5.0")]
    lines = [f"{seed},2,{step},{loss},0,0,0\n" for seed, step, loss in rows]
    header = "seed,q,step,loss,episode_return,action_gap,support\n"
    (tmp_path / "metrics.csv").write_text("".join([header, *lines]))
    ((label, (steps, values)),) = read_curves(tmp_path)("loss").items()
    assert label == ("q = 2",)
    np.testing.assert_array_equal(steps, [10, 20])
    np.testing.assert_array_equal(values, [[1, np.nan], [3, 5]])
    np.testing.assert_array_equal(smooth(values, 9), [[1, 1], [3, 4]])
