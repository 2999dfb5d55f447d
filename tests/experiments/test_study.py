"""Studies: the files that come with the package, a user's own, and what they become."""

import dataclasses
import json
import os
import re
from pathlib import Path

import matplotlib
import numpy as np
import pytest

from support.configs import paper
from tsallax.experiments import study
from tsallax.experiments.jobs import Job, join, make_jobs, split
from tsallax.experiments.results import Curve
from tsallax.operators import ALGORITHMS
from tsallax.report import figure
from tsallax.report.figure import draw_study
from tsallax.storage.files import Directory
from tsallax.training.config import grid

OWN = """
title = "mine"
columns = ["q"]
curves = ["algo"]

[common]
env = "CartPole-v1"
steps = 1_000
seeds = 3

[[runs]]
algo = ["tal", "tsallis-dqn"]
q = [1.5, 2]
policy = ["paper", "exact"]

[[runs]]
algo = "mt-dqn"
log_weight = 1

[[scales.short]]
steps = 400
only = { q = [1.5] }
"""


@pytest.mark.parametrize("scale", ["smoke", "quick", "full"])
@pytest.mark.parametrize("name", study.names())
def test_every_study_of_the_package_resolves_at_every_scale(name, scale):
    found = study.settings(study.load(name), scale)
    assert found
    assert all(setting.config.steps > (setting.config.warmup or 0) for setting in found)


def test_the_papers_figures_are_there_in_order():
    assert study.names()[:10] == [f"fig{i}" for i in range(1, 11)]


def test_every_algorithm_is_in_the_study_of_them():
    found = study.settings(study.load("algorithms"), "quick")
    assert [setting.config.algo for setting in found] == list(ALGORITHMS)


def test_the_full_scale_is_the_papers():
    steps = {"fig2": (500_000, 30), "fig6": (10_000_000, 3), "fig8": (30_000_000, 3)}
    for name, wanted in steps.items():
        found = study.settings(study.load(name), "full")
        assert {(s.config.steps, s.config.seeds) for s in found} == {wanted}
    assert len({s.config.env for s in study.settings(study.load("fig8"), "full")}) == 15


def test_settings_are_all_combinations_and_policies_meet_where_q_is_closed():
    """2 x 2 x 2 in the first block, 1 in the second; paper and exact are one run at q = 2."""
    found = study.settings(study.parse(OWN, "own"))
    assert len(found) == 9
    jobs = make_jobs(found, Path("runs"))
    assert len(jobs) == 7
    closed = [s for s in found if s.labels["q"] == 2]
    assert {s.labels["policy"] for s in closed} == {"paper", "exact"}
    assert {s.config.policy for s in closed} == {"exact"}
    assert found[-1].labels == {
        "env": "CartPole-v1", "algo": "mt-dqn", "policy": "", "q": "", "log_weight": 1
    }  # fmt: skip


def test_a_scale_overrides_and_leaves_out():
    found = study.settings(study.parse(OWN, "own"), "short")
    assert {s.labels["q"] for s in found} == {1.5}
    assert {s.config.steps for s in found} == {400}


def test_a_label_is_the_value_that_is_run():
    """Also if a scale sets a field that the study varies: the table would name another value."""
    found = study.settings(study.parse(f"{OWN}q = 2\n", "own"), "short")
    assert {s.labels["q"] for s in found} == {2}
    assert {s.config.q for s in found} == {(2.0,)}


RULE = "[[runs]]\nenv = 'CartPole-v1'\n[[scales.short]]\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("title = 'x'", "nothing to run"),
        ("[[runs]]\nalgo = 'tal'", "[[runs]] 1: which env?"),
        ("[[runs]]\nenv = 'CartPole-v1'\nalpa = 1", "unknown field 'alpa'; did you mean 'alpha'?"),
        ("colums = ['q']\n[[runs]]\nenv = 'CartPole-v1'", "did you mean 'columns'?"),
        ("[[runs]]\nenv = 'CartPole-v1'\nq = []", "q is an empty list"),
        ("[[runs]]\nenv = 'CartPole-v1'\nhidden = []", "hidden is an empty list"),
        ("[[runs]]\nenv = 'CartPole-v1'\nq = 'two'", "q must be a number, not 'two'"),
        ("[[runs]]\nenv = 'CartPole-v1'\nq = true", "q must be a number, not True"),
        (
            "[[runs]]\nenv = 'CartPole-v1'\nsteps = 'many'",
            "steps must be a whole number, not 'many'",
        ),
        ("[[runs]]\nenv = 'CartPole-v1'\nseeds = 2\nstop_at = 9", "stop_at ends each seed at"),
        ("[[runs]]\nenv = 7", "wrong kind"),
        ("[[runs]]\nenv = 'CartPole-v1'\nalgo = 'tall'", "unknown algorithm 'tall'"),
        ("[[runs]]\nenv = 'CartPole-v1'\nalpha = -1", "alpha must be positive"),
        ("runs = 3", "nothing to run"),
        ("common = 3\n[[runs]]\nenv = 'CartPole-v1'", "nothing to run"),
        ("rows = 'env'\n[[runs]]\nenv = 'CartPole-v1'", "rows must be a list of fields"),
        ("rows = ['envs']\n[[runs]]\nenv = 'CartPole-v1'", "unknown field 'envs'"),
        ("scales = 3\n[[runs]]\nenv = 'CartPole-v1'", "[[scales.NAME]]"),
        ("metric = 'x'\n[[runs]]\nenv = 'CartPole-v1'", "metric must be one of"),
        ("[[runs]]\nenv = 'CartPole-v1'\nsteps = [1000, 2000]", "alike but for steps"),
        (RULE + "match = 'CartPole*'", "match must be a list"),
        (RULE + "match = [3]", "match must be a list"),
        (RULE + "only = 3", "only must be a table of lists"),
        (RULE + "only = { q = 2 }", "only must be a table of lists"),
        (RULE + "only = { alpa = [2] }", "unknown field 'alpa'"),
        ("[[runs", "own: "),
        ("runs = [1, 2]", "nothing to run"),
    ],
)
def test_bad_studies_are_refused_with_their_place(text, words):
    with pytest.raises(ValueError, match="own") as error:
        study.settings(study.parse(text, "own"))
    assert words in str(error.value)


def test_enormous_studies_are_refused_at_once():
    thousand = [i / 1001 for i in range(1, 1001)]
    numbers = "".join(f"{name} = {thousand}\n" for name in ("q", "alpha", "beta", "gamma"))
    own = study.parse(f"[[runs]]\nenv = 'CartPole-v1'\n{numbers}", "own")
    with pytest.raises(ValueError, match=r"1\.0e\+12 settings; at most 10,000 are run"):
        study.settings(own)
    with pytest.raises(ValueError, match="own: lists or tables are nested too deeply"):
        study.parse("x = " + "[" * 5000 + "]" * 5000, "own")


@pytest.mark.parametrize("name", ["../x", "..", "/x", "a/b", "", "x\0"])
def test_a_name_that_leaves_the_folder_of_the_results_is_refused(name):
    with pytest.raises(ValueError, match="is not the name of a file"):
        study.parse(OWN, name)
    with pytest.raises(ValueError, match="is not the name of a file"):
        study.parse(OWN.replace("scales.short", f"scales.{json.dumps(name)}"), "own")


def test_a_study_is_read_from_a_file_of_bounded_size(tmp_path):
    (tmp_path / "own.toml").write_text(OWN)
    (tmp_path / "named.toml").symlink_to("own.toml")  # it is what the user named
    assert study.read(tmp_path / "named.toml") == study.parse(OWN, "named")
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "zero.toml").symlink_to("/dev/zero")
    with (tmp_path / "sparse.toml").open("wb") as file:
        file.truncate(1 << 40)
    for name, words in (("pipe", "regular"), ("zero", "regular"), ("sparse", "1,048,576 are read")):
        with pytest.raises(ValueError, match=words):
            study.read(tmp_path / f"{name}.toml")


def test_a_scale_or_study_that_is_not_there():
    with pytest.raises(ValueError, match="no scale 'tiny'; there are: short"):
        study.settings(study.parse(OWN, "own"), "tiny")
    with pytest.raises(ValueError, match="did you mean 'fig4'"):
        study.load("figure4")
    with pytest.raises(ValueError, match="nothing to run at scale"):
        study.settings(study.parse(OWN.replace("[1.5] }", "[7] }"), "own"), "short")


def test_seeds_are_split_as_equally_as_can_be():
    config = paper("CartPole-v1", seeds=7, first_seed=10)
    assert [(c.first_seed, c.seeds) for c in split(config, 3)] == [(10, 3), (13, 2), (15, 2)]


def test_joined_jobs_hold_the_same_cells_and_keep_closed_forms_apart():
    numbers = [(q, alpha) for q in (1.5, 2.0, 3.0, 4.0) for alpha in (0.01, 0.03)]
    apart = [paper("CartPole-v1", q=(q,), alpha=(a,), seeds=2) for q, a in numbers]
    joined = join(apart, 8)
    cells = [(c["q"], c["alpha"]) for config in joined for c in grid(config)]
    assert sorted(cells) == sorted(numbers)
    assert all(len(grid(config)) * config.seeds <= 8 for config in joined)
    assert [set(config.q) for config in joined if 2.0 in config.q] == [{2.0}]
    assert len(joined) < len(apart)


def test_jobs_that_share_a_program_say_so():
    config = paper("CartPole-v1", q=(1.5,), seeds=2)
    job = Job(config, Path("x"))
    for same in ({"q": (3.0,)}, {"alpha": (0.1,)}, {"first_seed": 5}, {"steps": 8_000}):
        assert Job(dataclasses.replace(config, **same), Path("y")).program == job.program
    for other in ({"q": (2.0,)}, {"algo": "mt-dqn"}, {"seeds": 3}, {"max_grad_norm": (1.0,)}):
        assert Job(dataclasses.replace(config, **other), Path("y")).program != job.program


def drawn(curves, folder) -> str:
    with matplotlib.rc_context({"svg.fonttype": "none"}), Directory(folder) as opened:
        _, svg = draw_study(study.parse(OWN, "own"), curves, opened)
    return svg.read_text()


def curve(value=np.nan, seeds=1, **labels) -> Curve:
    columns = {
        "episodes": np.full((seeds, 3), np.isfinite(value)),
        "episode_return": np.full((seeds, 3), value),
    }
    return Curve(labels, list(range(seeds)), np.array([1, 2, 3]), columns)


def test_a_panel_without_an_episode_says_so(tmp_path):
    svg = drawn([curve(algo="dqn", q="1"), curve(1.0, algo="dqn", q="2")], tmp_path)
    assert svg.count("no episode ended") == 1
    assert "episodic return: 1 seed" in svg  # no band, and no mean of one


@pytest.mark.parametrize(
    ("seeds", "curves", "there"),
    [
        (1, 1, "1 seed"),
        (2, 1, "mean and standard deviation of 2 seeds"),
        (3, 1, "interquartile mean and 95 % interval of 3 seeds"),
        (3, 8, "interquartile mean of 3 seeds"),  # too many for bands
    ],
)
def test_the_heading_says_what_is_drawn(tmp_path, seeds, curves, there):
    found = [curve(1.0, seeds, algo="tal", q="2", beta=str(i)) for i in range(curves)]
    assert re.findall(r">episodic return: ([^<]*)<", drawn(found, tmp_path)) == [there]


def size_of(svg: str) -> tuple[float, float]:
    """In inches; SVG has 72 points to one."""
    wide, tall = (re.search(rf'{side}="([\d.]+)pt"', svg) for side in ("width", "height"))
    return float(wide[1]) / 72, float(tall[1]) / 72


def test_a_picture_is_as_wide_as_a_page_however_many_panels(tmp_path):
    """Ten panels stand in lines of three, one is as wide as the page."""
    ten = drawn([curve(1.0, algo="dqn", q=str(q)) for q in range(10)], tmp_path)
    assert [ten.count(f">q = {q}<") for q in range(10)] == [1] * 10
    one = drawn([curve(1.0, algo="dqn", q="2")], tmp_path)
    assert size_of(ten)[0] == size_of(one)[0] == figure.WIDTH
    assert size_of(ten)[1] - size_of(one)[1] == pytest.approx(3 * figure.HEIGHT, abs=0.01)


def test_a_panel_that_was_not_run_takes_no_place(tmp_path):
    """Two rows, three columns, of which the second row has one: three lines, not four."""
    one = study.parse(OWN.replace('columns = ["q"]', 'rows = ["algo"]\ncolumns = ["q"]'), "own")
    cells = [("dqn", "1"), ("dqn", "2"), ("dqn", "3"), ("tal", "2")]
    with Directory(tmp_path) as folder:
        _, svg = draw_study(one, [curve(1.0, algo=a, q=q) for a, q in cells], folder)
    assert 3 * figure.HEIGHT < size_of(svg.read_text())[1] < 4 * figure.HEIGHT


def test_a_single_point_is_drawn(tmp_path):
    """A line through one point shows nothing, so it has a mark."""
    lone = curve(1.0, algo="dqn", q="2")
    lone = lone._replace(
        steps=lone.steps[:1], columns={n: x[:, :1] for n, x in lone.columns.items()}
    )
    other = curve(1.0, algo="tal", q="2")
    (axes,) = figure.make_figure(study.parse(OWN, "own"), [lone, other]).axes
    assert [line.get_marker() for line in axes.lines] == ["o", ""]


def test_the_number_of_seeds_holds_for_environments_that_no_rule_of_a_scale_fits():
    own = OWN + 'match = ["MinAtar/*"]\n'
    found = study.settings(study.parse(own, "own"), "short", seeds=7)
    assert {(s.config.seeds, s.config.steps) for s in found} == {(7, 1_000)}


def test_settings_that_a_table_could_not_tell_apart_are_refused():
    """Else they were found out when all of their runs were done, as rows that are there twice."""
    own = OWN.replace("q = [1.5, 2]", "q = [1.5, 2, 2.0000001]")
    with pytest.raises(ValueError, match=r"alike to six digits.*2\.0000001"):
        study.settings(study.parse(own, "own"))
