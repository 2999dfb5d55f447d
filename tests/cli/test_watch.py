"""A run seen from another process, and its metrics in other people's logs."""

import shutil
import time

import numpy as np
import pandas as pd
import pytest

from support import tiny
from tsallax import cli
from tsallax.cli import logs, watch
from tsallax.cli.display import sparkline
from tsallax.cli.watch import periods
from tsallax.report.page import summary
from tsallax.report.page.gather import gather
from tsallax.spelling import counted
from tsallax.storage.files import Directory, lock
from tsallax.storage.run_folder import read_about
from tsallax.training.final import folder_scores, in_words


def test_a_finished_run_is_shown_once(finished, capsys):
    assert cli.main(["watch", str(finished)]) == 0
    out = capsys.readouterr().out
    assert "tal on CartPole-v1, 4 runs side by side: 2 settings x 2 seeds" in out
    assert "120 / 120 steps" in out
    table = pd.read_csv(finished / "metrics.csv").query("step == 120")
    for q, own in table.groupby("q"):  # the table that a terminal shows
        low, high = own.episode_return.min(), own.episode_return.max()
        row = f"q={q:g}     {own.episode_return.mean():.1f}  {low:.1f} to {high:.1f}"
        assert row.split() in [line.split()[:5] for line in out.splitlines()]
    assert "left" not in out
    with Directory(finished) as folder:
        score = folder_scores(folder)
    assert out.endswith(f"run: done, {in_words(score)}\n")


@pytest.mark.parametrize("every", ["-1", "nan", "1e300"])
def test_a_time_that_nobody_can_wait_is_refused(finished, every, capsys):
    """It was a traceback, once the first look was over."""
    assert cli.main(["watch", str(finished), "--every", every]) == 2
    assert "every must be between 0 and 86,400 seconds" in capsys.readouterr().err


def test_one_final_return(finished, tmp_path, capsys):
    """`train`, `watch`, Python and the report: by hand, the mean of the last of three periods."""
    table = pd.read_csv(finished / "metrics.csv")
    last = table[table.step == 120].episode_return
    words = f"return {last.mean():.1f} (mean over the last fifth of training)"
    tiny.train(tmp_path / "run")
    assert words in capsys.readouterr().out
    assert cli.main(["watch", str(finished), "--once"]) == 0
    assert words in capsys.readouterr().out
    (found,) = gather([finished]).runs
    scores = [summary.final(setting) for setting in summary.settings_of([found])[0]]
    np.testing.assert_allclose(np.concatenate(scores).mean(), last.mean())


def test_numbers_of_things():
    assert [counted(n, "run") for n in (0, 1, 2)] == ["0 runs", "1 run", "2 runs"]


def test_a_table_that_is_written_to_just_now(finished, tmp_path):
    """Only whole periods: of 3 periods x 4 cells the last row is cut in the middle."""
    text = (finished / "metrics.csv").read_text()
    (tmp_path / "metrics.csv").write_text(text[:-20])
    with Directory(tmp_path) as folder:
        found = list(periods(folder, 4))
    assert [step for step, _ in found] == [40, 80]
    assert all(len(metrics.loss) == 4 for _, metrics in found)


def test_a_run_under_way_is_followed_to_its_end(finished, tmp_path, monkeypatch, capsys):
    path = shutil.copytree(finished, tmp_path / "run")
    about, rows = (path / "run.json").read_text(), (path / "metrics.csv").read_text()
    (path / "run.json").write_text(about.replace('"status": "done"', '"status": "running"'))
    (path / "metrics.csv").write_text("".join(rows.splitlines(keepends=True)[:5]))
    looks = []

    def time_passes(seconds):
        looks.append(seconds)
        (path / "metrics.csv").write_text(rows)
        (path / "run.json").write_text(about)

    monkeypatch.setattr(watch.time, "sleep", time_passes)
    with Directory(path) as held:
        lock(held)  # as the run's own process does
        assert cli.main(["watch", str(path), "--every", "0.5"]) == 0
    assert looks == [0.5]
    assert "120 / 120 steps" in capsys.readouterr().out


def test_one_look_through_a_pipe_has_the_step_and_the_reason_of_the_end(finished, tmp_path, capsys):
    """As on a terminal: of a run under way, and of one that --stop-at has ended."""
    path = shutil.copytree(finished, tmp_path / "run")
    about, rows = (path / "run.json").read_text(), (path / "metrics.csv").read_text()
    (path / "metrics.csv").write_text("".join(rows.splitlines(keepends=True)[:5]))
    assert cli.main(["watch", str(path), "--once"]) == 0
    assert "\n40 / 120 steps   every run has reached --stop-at   return" in capsys.readouterr().out
    (path / "run.json").write_text(about.replace('"status": "done"', '"status": "running"'))
    assert cli.main(["watch", str(path), "--once"]) == 0
    assert "\n40 / 120 steps   return" in capsys.readouterr().out


def test_a_run_whose_process_is_gone_is_not_waited_for(finished, tmp_path, capsys):
    path = shutil.copytree(finished, tmp_path / "run")
    about = (path / "run.json").read_text()
    (path / "run.json").write_text(about.replace('"status": "done"', '"status": "running"'))
    assert cli.main(["watch", str(path)]) == 0
    assert f"its process is gone; `tsallax train --resume {path}`" in capsys.readouterr().out


def test_watching_nothing_is_one_line(tmp_path, capsys):
    assert cli.main(["watch", str(tmp_path)]) == 2
    assert capsys.readouterr().err.endswith(" is not a run's folder: it has no run.json\n")


def test_the_folder_around_a_run_names_it(finished, capsys):
    assert cli.main(["watch", str(finished.parent)]) == 2
    assert capsys.readouterr().err.endswith(f"it has no run.json, but {finished} is one\n")


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_logs_hold_the_metrics(tmp_path, monkeypatch):
    """TensorBoard's events are read back with TensorBoard's own format; wandb works offline."""
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    path = tmp_path / "run"
    command = [
        "train",
        "CartPole-v1",
        *tiny.flags(),
        "--out",
        str(path),
        "--log",
        "tensorboard",
        "wandb",
    ]
    assert cli.main(command) == 0
    assert read_about(path).status == "done"
    found = events(path / "tensorboard")
    with Directory(path) as folder:
        losses = [metrics.loss for _, metrics in periods(folder, 4)]
    for i, label in enumerate(("seed_0_q_1.5", "seed_1_q_1.5", "seed_0_q_3", "seed_1_q_3")):
        got = [found[f"loss/{label}", step] for step in (40, 80, 120)]
        np.testing.assert_allclose(got, [row[i] for row in losses], rtol=1e-6)
        assert [(f"eval_return/{label}", step) in found for step in (40, 80)] == [False, True]
    import wandb

    wandb.finish()  # as the end of the process does
    (log,) = path.glob("wandb/offline-run-*/*.wandb")
    wanted = [f"{name}/seed_1_q_3".encode() for name in ("eval_return", "loss")]
    for _ in range(100):  # a process of its own writes the file
        kept = log.read_bytes()
        if all(name in kept for name in wanted):
            break
        time.sleep(0.2)
    assert all(name in kept for name in wanted)


def events(folder) -> dict[tuple[str, int], float]:
    """Scalars of an event file: records of a length, a checksum, a message and another checksum."""
    from tensorboardX.proto.event_pb2 import Event

    data, found = next(folder.glob("events*")).read_bytes(), {}
    while data:
        length = int.from_bytes(data[:8], "little")
        event = Event.FromString(data[12 : 12 + length])
        data = data[16 + length :]
        for value in event.summary.value:
            if value.HasField("simple_value"):
                found[value.tag, event.step] = value.simple_value
    return found


def test_a_log_that_is_not_installed_is_said_first(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(logs, "find_spec", lambda name: None)
    command = [
        "train",
        "CartPole-v1",
        *tiny.flags(),
        "--out",
        str(tmp_path / "x"),
        "--log",
        "wandb",
    ]
    assert cli.main(command) == 2
    assert "pip install 'tsallax[logs]'" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_the_highest_value_has_the_whole_bar():
    """Whatever rounding does to the quotient of two differences."""
    assert sparkline([0.0, 49.0]) == "\u2581\u2588"
    assert sparkline([5.0, np.nan, 5.0]) == "\u2581 \u2581"
    draw = np.random.default_rng(0).uniform(size=(100, 5))
    assert all("\u2588" in sparkline(list(values)) for values in draw)
