"""`tsallax play`: what is drawn is what the agent does, and the file holds all of it."""

import io
import subprocess
from functools import cache
from itertools import pairwise
from unittest.mock import Mock

import jax
import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from support.configs import paper
from tsallax import cli, envs
from tsallax.api import load
from tsallax.cli import minatar_terminal
from tsallax.learners.rollout import Moment, evaluate, moments
from tsallax.report import video
from tsallax.report.moment_words import percent, summary, value
from tsallax.training.build import make_run
from tsallax.training.driver import make_folder
from tsallax.training.stored_config import load_weights, read_run

NAMES = ("left", "stay", "right")


@pytest.fixture(scope="module")
def cartpole(finished):
    return finished


@pytest.fixture(scope="module")
def breakout(tmp_path_factory):
    """Before its first step; with this alpha some actions are ruled out, several possible."""
    path = tmp_path_factory.mktemp("play") / "breakout"
    config = paper("MinAtar/Breakout", hidden=(8,), q=(2.0,), alpha=(0.5,))
    run = make_run(config)
    folder = make_folder(path, run)
    folder.save_weights(jax.vmap(run.agent.init)(jax.random.split(jax.random.key(0), 1)).params)
    folder.close("done")
    return path


@cache
def loaded(folder, cell):
    """With the environment that all cells share, so that its functions are compiled once."""
    return make_run(read_run(folder)[0]).learner.env, load(folder, cell)


def told(folder, cell=0, **options):
    env, model = loaded(folder, cell)
    return list(moments(env, model.agent, model.params, model.hp, **options))


def moment(pi, action=0, side=8):
    probabilities = np.array(pi, np.float32)
    return Moment(np.zeros((side, side, 3), np.uint8), 3, 2.0, action, probabilities, probabilities)


def files(folder):
    return sorted(path.name for path in folder.rglob("*"))


def read_mp4(path, height, width):
    command = [video.ffmpeg(), "-v", "error", "-i", str(path), "-f", "rawvideo"]
    raw = subprocess.run([*command, "-pix_fmt", "rgb24", "-"], capture_output=True, check=True)
    return np.frombuffer(raw.stdout, np.uint8).reshape(-1, height, width, 3)


def test_an_episode_is_told_whole(cartpole):
    found = told(cartpole, episodes=2, seed=5)
    for episode in (1, 2):
        part = [m for m in found if m.episode == episode]
        assert [m.step for m in part] == list(range(len(part)))
        assert [m.action is None for m in part] == [False] * (len(part) - 1) + [True]
        assert [m.total for m in part] == list(range(len(part)))  # CartPole pays 1 a step
        assert all((a.picture != b.picture).any() for a, b in pairwise(part))
    assert len({m.episode for m in found}) == 2


@pytest.mark.parametrize("greedy", [False, True])
def test_returns_are_those_of_evaluate(cartpole, greedy):
    config, about = read_run(cartpole)
    run = make_run(config)
    params = load_weights(cartpole, about, run.learner.params())
    for cell, returns in enumerate(run.learner.evaluate(params, 3, greedy, 7)):
        found = told(cartpole, cell, episodes=3, seed=7, greedy=greedy)
        np.testing.assert_array_equal([m.total for m in found if m.action is None], returns)


def test_episodes_that_are_truncated_later_than_they_may_be_are_whole(cartpole):
    """An environment declares the least number of steps after which it truncates."""
    env, model = loaded(cartpole, 0)

    def step(state, action, key):
        after, outcome = env.step(state, action, key)
        ends = (after.t >= 3) & (jax.random.uniform(key) < 0.5)
        return after, outcome._replace(truncated=ends)

    ragged = env._replace(step=step, time_limit=3)
    hp, params = jax.tree.map(lambda x: x[None], (model.hp, model.params))
    returns = evaluate(ragged, model.agent, hp, params, 5, greedy=True)[0]
    found = moments(ragged, model.agent, model.params, model.hp, episodes=5, greedy=True)
    np.testing.assert_array_equal([m.total for m in found if m.action is None], returns)
    assert returns.max() > 3


def test_rewards_are_summed(breakout):
    """With rewards that differ, as no environment here has them: step t pays t + 1/2."""
    env = envs.make("MinAtar/Breakout")

    def step(state, action, key):
        after, outcome = env.step(state, action, key)
        return after, outcome._replace(reward=state.steps + np.float32(0.5))

    model, paid = load(breakout), env._replace(step=step)
    found = list(moments(paid, model.agent, model.params, model.hp, steps=6))
    assert [m.total for m in found] == [0.5 * t * t for t in range(len(found))]
    assert len(found) > 3


def test_actions_are_possible_and_greedy_ones_best(breakout):
    drawn = [m for m in told(breakout, episodes=4) if m.action is not None]
    assert all(m.pi[m.action] > 0 for m in drawn)
    assert any(m.pi[m.action] < m.pi.max() for m in drawn)
    assert any((m.pi == 0).any() for m in drawn)
    best = [m for m in told(breakout, greedy=True) if m.action is not None]
    assert all(m.action == m.Q.argmax() for m in best)


def test_the_seed_decides(cartpole):
    def drawn(seed):
        return [video.frame(m, ("left", "right"), "x") for m in told(cartpole, seed=seed, steps=5)]

    first = drawn(1)
    np.testing.assert_array_equal(first, drawn(1))
    assert (first[0] != drawn(2)[0]).any()


def row(image, a, names=NAMES, side=480):
    """One action's part of a frame."""
    height = min(video.MAX_ROW, (side - video.HEADING) // len(names))
    top = video.HEADER + video.HEADING + height * a
    return image[top : top + height, 2 * video.MARGIN + side :]


def test_ruled_out_differs_from_hardly_possible():
    never, hardly, half = (
        video.frame(moment(pi), NAMES, "x") for pi in ([1, 0, 0], [1, 1e-6, 0], [0.5, 0.5, 0])
    )
    # Not in colour alone: in grey, a good part of the row is another one.
    change = row(never, 1).mean(-1) - row(hardly, 1).mean(-1)
    assert (np.abs(change) > 20).mean() > 0.05
    np.testing.assert_array_equal(row(never, 2), row(hardly, 2))
    assert (row(hardly, 1) != row(half, 1)).any()
    assert percent(1e-6) == "< 0.1 %"
    assert percent(1 - 1e-6) == "> 99.9 %"


def test_not_allowed_differs_from_ruled_out():
    never = moment([1, 0, 0])
    barred = never._replace(Q=np.array([1.0, -np.inf, 0.5], np.float32))
    one, other = (video.frame(m, NAMES, "x") for m in (never, barred))
    assert (row(one, 1) != row(other, 1)).any()
    np.testing.assert_array_equal(row(one, 2)[:, :200], row(other, 2)[:, :200])
    assert summary(never).endswith("2 of 3 actions ruled out")
    assert summary(barred).endswith("1 of 3 actions ruled out, 1 not allowed")
    assert [value(barred, a) for a in range(3)] == ["1.000", "-", "0.500"]


def test_the_chosen_action_is_marked():
    first, third = (video.frame(moment([0.4, 0.2, 0.4], a), NAMES, "x") for a in (0, 2))
    assert (row(first, 0) != row(third, 0)).any()
    np.testing.assert_array_equal(row(first, 1), row(third, 1))
    assert (np.abs(row(first, 0).mean(-1) - row(third, 0).mean(-1)) > 20).sum() > 200


def test_a_frame_keeps_its_size_and_is_even():
    pi = np.full(18, 1 / 18)
    cases = [moment(pi, side=211), moment(pi, None, side=211), moment(pi * np.nan, side=211)]
    shapes = {
        video.frame(m, ["DOWNLEFTFIRE"] * 18, "long " * n).shape for n in (1, 99) for m in cases
    }
    ((height, width, _),) = shapes
    assert height % 2 == width % 2 == 0


def test_small_pictures_are_enlarged_by_whole_pixels():
    picture = np.random.default_rng(0).integers(0, 255, (160, 160, 3), np.uint8)
    image = video.enlarge(picture)
    assert image.shape == (480, 480, 3)
    np.testing.assert_array_equal(image[1::3, 1::3], picture)
    np.testing.assert_array_equal(image[::3, 2::3], picture)
    assert video.enlarge(np.zeros((400, 600, 3), np.uint8)).shape == (400, 600, 3)


def test_gif_holds_every_step(cartpole, tmp_path, capsys):
    path = tmp_path / "x.gif"
    options = ["--cell", "1", "--seed", "3", "--steps", "7", "--fps", "20"]
    assert cli.main(["play", str(cartpole), *options, "--out", str(path)]) == 0
    out = capsys.readouterr().out
    assert "episode 1: 7 steps, the most that --steps allows, return 7\n" in out
    assert out.endswith(f"video {path}\n")
    found = told(cartpole, 1, seed=3, steps=7)
    title = "tal on CartPole-v1, seed 1, q = 1.5"
    with Image.open(path) as gif:
        assert gif.n_frames == 8
        for i, m in enumerate(found):
            gif.seek(i)
            assert gif.info["duration"] == (1000 if m.action is None else 50)  # the end stays
            want = video.frame(m, ("left", "right"), title)
            assert np.abs(np.asarray(gif.convert("RGB")).astype(int) - want).max() < 12
    assert files(tmp_path) == ["x.gif"]


def test_mp4_holds_every_step(breakout, capsys):
    assert cli.main(["play", str(breakout), "--steps", "5", "--fps", "4"]) == 0
    assert f"video {breakout / 'play.mp4'}\n" in capsys.readouterr().out
    names = envs.make("MinAtar/Breakout").action_names
    title = "tal on MinAtar/Breakout, seed 0, q = 2"
    want = [video.frame(m, names, title) for m in told(breakout, steps=5)]
    found = read_mp4(breakout / "play.mp4", *want[0].shape[:2])
    assert len(found) == 5 + 4  # the end stays for a second
    for image, frame in zip(found, [*want, *want[-1:] * 3], strict=True):
        assert np.abs(image.astype(int) - frame).mean() < 3
    (breakout / "play.mp4").unlink()
    assert not list(breakout.glob("*.part*"))


def test_without_ffmpeg_it_is_a_gif(breakout, capsys, monkeypatch):
    monkeypatch.setattr(video, "ffmpeg", lambda: None)
    assert cli.main(["play", str(breakout), "--steps", "2"]) == 0
    assert "pip install 'tsallax[video]'" in capsys.readouterr().out
    (breakout / "play.gif").unlink()
    assert cli.main(["play", str(breakout), "--out", str(breakout / "x.mp4")]) == 2
    assert "pip install 'tsallax[video]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("{tmp}/nothing", "there is no folder {tmp}/nothing"),
        ("{run} --out {tmp}/x.avi", "ends in .mp4 or .gif, not 'x.avi'"),
        ("{run} --out {tmp}/nowhere/x.gif", "nowhere is no folder"),
        ("{run} --out {tmp}/x.gif --cell 4", "has cells 0 to 3, not 4"),
        ("{run} --out {tmp}/x.gif --cell -1", "has cells 0 to 3, not -1"),
        ("{run} --out {tmp}/x.gif --episodes 0", "episodes must be at least 1, not 0"),
        ("{run} --out {tmp}/x.gif --steps 0", "steps must be at least 1, not 0"),
        ("{run} --out {tmp}/x.gif --fps 0", "fps must be at least 1, not 0"),
        ("{run} --out {tmp}/x.gif --seed -1", "seed must be between 0 and 2^31 - 1, not -1"),
        ("{run} --out {tmp}/x.gif --seed 2147483648", "2^31 - 1, not 2147483648"),
        ("{run} --out {tmp}/x.gif --terminal", "--terminal writes no video"),
        ("{run} --terminal", "is for MinAtar's games; CartPole-v1 has no grid of cells"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(cartpole, tmp_path, capsys, arguments, message):
    before = files(cartpole)
    given = [word.format(tmp=tmp_path, run=cartpole) for word in arguments.split()]
    assert cli.main(["play", *given]) == 2
    error = capsys.readouterr().err
    assert message.format(tmp=tmp_path) in error
    assert error.count("\n") == 1
    assert files(tmp_path) == []
    assert files(cartpole) == before


@pytest.mark.parametrize("ending", ["gif", "mp4"])
def test_what_fails_halfway_leaves_the_old_file(tmp_path, ending):
    path = tmp_path / f"x.{ending}"
    path.write_text("old")

    def frames():
        yield np.zeros((64, 64, 3), np.uint8)
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        video.write_video(path, frames(), 10)
    assert path.read_text() == "old"
    assert files(tmp_path) == [path.name]


def test_ffmpeg_that_fails_is_told(tmp_path):
    # 4:2:0 has no odd sizes: ffmpeg refuses them, as it would a full disk.
    odd = [np.zeros((63, 63, 3), np.uint8)] * 50
    with pytest.raises(OSError, match="ffmpeg could not write") as caught:
        video.write_video(tmp_path / "x.mp4", odd, 10)
    assert "\n" not in str(caught.value)
    assert files(tmp_path) == []


def test_ctrl_c_leaves_nothing(cartpole, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(video, "frame", Mock(side_effect=KeyboardInterrupt))
    assert cli.main(["play", str(cartpole), "--out", str(tmp_path / "x.gif")]) == 130
    assert "is not written" in capsys.readouterr().err
    assert files(tmp_path) == []


def test_terminal_prints_the_board(breakout, capsys):
    assert cli.main(["play", str(breakout), "--terminal", "--steps", "3"]) == 0
    out = capsys.readouterr().out
    first = told(breakout, steps=3)[0]
    lines = out.splitlines()
    assert lines[:2] == ["tal on MinAtar/Breakout, seed 0, q = 2", summary(first)]
    assert lines[3].startswith("▒▒" * 10)  # the first row of bricks
    assert lines[11].startswith("· · · · ▓▓· · · · ·")  # the paddle
    for a, name in enumerate(envs.make("MinAtar/Breakout").action_names):
        line = next(line for line in lines[3:] if f" {name} " in line)
        assert ("ruled out" in line) == (first.pi[a] == 0)
        assert (f"> {name}" in line) == (first.action == a)
    assert "step 3  ·  return 0  ·  the episode is over" in out
    assert "episode 1: 3 steps" in out
    assert not list(breakout.glob("play*"))


def test_terminal_shows_the_picture_in_colour(breakout):
    first = told(breakout, steps=1)[0]
    names = envs.make("MinAtar/Breakout").action_names
    for height, rows in ((40, 20), (16, 10)):
        file = io.StringIO()
        console = Console(
            file=file, force_terminal=True, color_system="truecolor", width=90, height=height
        )
        minatar_terminal.show([first], names, "x", 1000, console)
        text = file.getvalue()
        # A live display draws again when it ends.
        assert sum("▀" in line for line in text.splitlines()) == 2 * rows
        assert "38;2;213;94;0" in text  # bricks
        assert "38;2;86;180;233" in text  # the paddle
