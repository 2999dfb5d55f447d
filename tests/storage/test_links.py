"""What is written beside a run's own files: videos, pictures, logs. None goes through a link."""

import numpy as np
import pytest

from support.studies import STUDY
from tsallax import cli
from tsallax.cli.logs import make_writers
from tsallax.experiments.jobs import make_jobs
from tsallax.experiments.local import Local
from tsallax.experiments.results import Curve
from tsallax.experiments.study import parse, settings
from tsallax.report import video
from tsallax.report.figure import draw_study
from tsallax.storage.files import Directory, open_below
from tsallax.training.config import Config


@pytest.mark.parametrize("suffix", [".gif", ".mp4"])
def test_a_video_takes_the_place_of_a_link(tmp_path, outside, suffix):
    path = tmp_path / f"play{suffix}"
    for name in (path.name, f"play.part{suffix}", f"{path.name}.part"):
        (tmp_path / name).symlink_to(outside / "file")
    video.write_video(path, iter([np.zeros((16, 16, 3), np.uint8)] * 2), 10)
    assert not path.is_symlink()
    assert path.stat().st_size > 40


def test_a_picture_takes_the_place_of_a_link(tmp_path, outside):
    (tmp_path / "small.png").symlink_to(outside / "file")
    (tmp_path / "small.svg.part").symlink_to(outside / "file")
    columns = {name: np.ones((1, 3)) for name in ("episodes", "episode_return")}
    curve = Curve({"env": "CartPole-v1", "algo": "tal", "q": "1"}, [0], np.arange(1, 4), columns)
    with Directory(tmp_path) as folder:
        written = list(draw_study(parse(STUDY, "small"), [curve], folder))
    assert [path.is_symlink() for path in written] == [False, False]


@pytest.mark.parametrize("log", ["tensorboard", "wandb"])
def test_live_logs_are_not_written_through_a_link(tmp_path, outside, log):
    (tmp_path / log).symlink_to(outside / "deep")
    with pytest.raises(ValueError, match=f"{log} is not a folder"):
        make_writers([log], tmp_path, Config("CartPole-v1"))


def test_a_workers_log_is_not_written_through_a_link(tmp_path, outside):
    executor = Local(open_below(tmp_path, "logs"), 1)
    core = executor.workers[0].core
    (tmp_path / "logs" / f"worker-{core}.log").symlink_to(outside / "file")
    with pytest.raises(ValueError, match="is not a regular file"):
        executor.start(make_jobs(settings(parse(STUDY, "small")), tmp_path / "runs")[0])
    executor.close()


@pytest.mark.parametrize("link", ["runs", "runs/one", "logs", "small"])
def test_a_sweep_stays_in_the_folder_that_was_named(tmp_path, outside, link, capsys):
    (tmp_path / "small.toml").write_text(STUDY)
    out = tmp_path / "out"
    one = make_jobs(settings(parse(STUDY, "small")), out / "runs", 1)[0].path
    at = one if link == "runs/one" else out / link
    at.parent.mkdir(parents=True)
    at.symlink_to(outside / "deep")
    command = ["sweep", str(tmp_path / "small.toml"), "--out", str(out)]
    if link == "small":
        with pytest.raises(ValueError, match="small is not a folder"):
            open_below(out, "small")
        return
    assert cli.main([*command, "--workers", "1"]) == 2
    assert f"{at.name} is not a folder" in capsys.readouterr().err
