"""What `tsallax report` reads, what it leaves out and says so, and its statistics."""

import json
import shutil

import jaxtyping
import numpy as np
import pytest

from support import runs
from tsallax import cli, stats
from tsallax.experiments import judging
from tsallax.experiments.claims import CLAIMS
from tsallax.experiments.results import COLUMNS
from tsallax.report.page import as_json, gather, html, summary
from tsallax.report.page.gather import Cell, Found, Run
from tsallax.storage.tables import METRICS

# --- Statistics -----------------------------------------------------------------------------------


def cell(seed, returns, whole=True, episodes=None, **setting):
    values = np.array(returns, float)
    columns = dict.fromkeys((*COLUMNS, "eval_return"), values)
    columns["diverged"] = np.full(len(values), -1.0)
    columns["episodes"] = np.ones(len(values)) if episodes is None else np.array(episodes, float)
    steps = 100 * np.arange(1, len(values) + 1)
    own = {"env": "e", "algo": "tal", "q": "2", **setting}
    return Cell(seed, own, steps, gather.clean(columns), whole)


def run_of(*cells, name="run"):
    return Run(name, "done", 1000, {}, list(cells), [])


def settings(*cells):
    return summary.settings_of([run_of(*cells)])[0]


def test_the_best_evaluation_is_each_seed_at_its_highest():
    """(3 + 7) / 2, of evaluations that are known at some steps only."""
    (one,) = settings(cell(0, [np.nan, 3, 1]), cell(1, [5, np.nan, 7]))
    assert summary.best_evaluation(one) == 5.0
    (unknown,) = settings(cell(0, [np.nan, np.nan]))
    assert summary.best_evaluation(unknown) is None
    del one.curve.columns["eval_return"]  # as in tables of older versions
    assert summary.best_evaluation(one) is None


def test_bands_by_hand():
    """Of 1, 2, 3, 4 and 100 the two extremes are left out: IQM 3, mean 22."""
    one = settings(*(cell(i, [x, 2 * x]) for i, x in enumerate((1, 2, 3, 4, 100))))
    found = summary.bands(one[0], "action_gap", 2)
    assert found["iqm"] == [3, 6]
    assert found["mean"] == [22, 44]
    assert found["n"] == [5, 5]
    values = np.array([1.0, 2, 3, 4, 100])
    assert found["sd"][0] == pytest.approx(values.std(), rel=1e-3)
    want = stats.interval(stats.iqm, values[:, None], resamples=summary.RESAMPLES)
    assert found["low"][0] == pytest.approx(float(want.low), rel=1e-3)
    assert found["high"][0] == pytest.approx(float(want.high), rel=1e-3)


def test_a_run_that_ended_early_counts_as_far_as_it_came():
    one = settings(cell(0, [1, 2, 3, 4]), cell(1, [3, 4], whole=False))
    found = summary.bands(one[0], "episode_return", 4)
    assert found["n"] == [2, 2, 1, 1]
    assert found["iqm"] == [2, 3, 3, 4]
    assert found["low"][2:] == [None, None]
    almost = settings(cell(0, [2] * 10), cell(1, [5] * 9, whole=False))[0]
    assert summary.final(almost).tolist() == [2]


def test_a_return_is_carried_forward_and_a_loss_is_not():
    nan = float("nan")
    one = settings(cell(0, [1, nan, 3, nan]))[0]
    assert summary.bands(one, "episode_return", 4)["iqm"] == [1, 1, 3, 3]
    assert summary.bands(one, "loss", 4)["iqm"] == [1, None, 3, None]


def test_a_seed_that_is_there_twice_counts_once():
    first, copy = run_of(cell(0, [1, 2, 3]), name="first"), run_of(cell(0, [1, 2]), name="copy")
    found, twice = summary.settings_of([copy, first])
    assert [len(s.curve.seeds) for s in found] == [1]
    assert found[0].ends == [300]
    assert [name for name, _ in twice] == ["copy"]


def test_what_follows_from_the_environment_is_no_label():
    found = settings(
        cell(0, [1], env="a", target_period="10", tag="x"),
        cell(0, [1], env="b", target_period="20", tag="x"),
        cell(0, [1], env="b", target_period="20", tag="y"),
    )
    assert list(found[0].curve.labels) == ["env", "algo", "tag"]


def test_options_that_vary_together_are_named_once():
    """Steps, evaluations and tag tell three runs of tal apart; dqn is told apart by its name."""
    found = settings(
        cell(0, [1], steps="10", eval_every="1", tag="x"),
        cell(0, [1], steps="20", eval_every="2", tag="x"),
        cell(0, [1], steps="20", eval_every="2", tag="y"),
        cell(0, [1], steps="30", eval_every="3", tag="x", algo="dqn"),
    )
    assert list(found[0].curve.labels) == ["env", "algo", "steps", "eval_every", "tag"]
    assert summary.facets_of(found) == ["env", "algo", "steps", "tag"]
    assert summary.facets_of(found[:1]) == ["env", "algo"]


def test_probability_of_improvement_by_hand():
    """{3, 5} against {1, 4}: 3 of 4 pairs won. The other q, and a single run, have no partner."""
    found = settings(
        cell(0, [3]), cell(1, [5]), cell(0, [1], algo="dqn"), cell(1, [4], algo="dqn"),
        cell(0, [9], q="3"), cell(1, [9], q="3"), cell(0, [9], algo="al"),
    )  # fmt: skip
    pairs = list(summary.pairs(found))
    assert [(pair["p"][0], found[pair["a"]].curve.labels) for pair in pairs] == [
        (0.75, {"env": "e", "algo": "tal", "q": "2"})
    ]
    assert found[pairs[0]["b"]].curve.labels["algo"] == "dqn"


def test_algorithms_without_a_common_q_are_compared_all_the_same():
    own = [
        (algo, q, seed)
        for algo, q in (("tal", "2"), ("tal", "3"), ("mdqn", "1"))
        for seed in (0, 1)
    ]
    found = settings(*(cell(seed, [int(q) + seed], algo=algo, q=q) for algo, q, seed in own))
    pairs = {tuple(found[p[k]].curve.labels["q"] for k in "ab") for p in summary.pairs(found)}
    assert pairs == {("2", "1"), ("3", "1")}


def test_two_hundred_runs_are_under_three_megabytes(monkeypatch):
    """Each with an own setting and two seeds: intervals everywhere. Types cost more than they."""
    monkeypatch.setattr(summary, "RESAMPLES", 20)
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    draw = np.random.default_rng(0)
    found = [
        run_of(*(cell(s, draw.normal(1e4, 3e3, 200), q=str(i)) for s in (0, 1)), name=f"run-{i}")
        for i in range(200)
    ]
    page = html(Found(found, [], [], []))
    assert 200_000 < len(page) < 3_000_000


# --- Reading --------------------------------------------------------------------------------------


def test_runs_become_settings(good_runs):
    found = runs.shown(good_runs)
    (one,) = found["sets"]
    assert [f["values"] for f in one["facets"]] == [["CartPole-v1"], ["dqn", "tal"]]
    scores = sorted(c["finals"]["episode_return"]["mean"] for c in one["curves"])
    assert scores == pytest.approx([0.95 * 50.5, 0.95 * 100.5], rel=1e-3)
    assert len(one["pairs"]) == 1
    assert found["problems"] == []
    assert dict(found["differ"]).keys() >= {"algo", "first_seed"}
    assert dict(found["common"])["env"] == "CartPole-v1"
    assert not dict(found["common"]).keys() & dict(found["differ"]).keys()


def test_a_grid_is_taken_apart(tmp_path):
    runs.write_run(tmp_path / "grid", q=(1.5, 2.0), learning_rate=(1e-3, 1.23456789e-3), seeds=2)
    (one,) = runs.shown(tmp_path)["sets"]
    assert [f["name"] for f in one["facets"]] == ["env", "algo", "q", "learning_rate"]
    assert [c["seeds"] for c in one["curves"]] == [2] * 4


def test_options_have_their_values_in_effect(tmp_path):
    """k follows from q, log_weight is alpha, and `stop_at` is not stored at its default."""
    folder = runs.write_run(tmp_path / "run", q=(1.0, 2.0), alpha=(0.03,))
    assert "stop_at" not in json.loads((folder / "run.json").read_text())["config"]
    shown = dict(runs.shown(tmp_path)["common"])
    assert (shown["k"], shown["log_weight"]) == ("1, 0.5", "0.03")
    assert (shown["keep_state"], shown["stop_at"]) == ("100", "")


def test_what_is_not_whole_is_said(good_runs, tmp_path):
    runs.write_run(tmp_path / "stopped", rows=4, status="stopped")
    runs.write_run(tmp_path / "running", rows=0, status="running", algo="al")
    runs.write_run(tmp_path / "failed", rows=2, status="failed", algo="pal")
    runs.write_run(tmp_path / "solved", rows=4, algo="dqn", stop_at=40.0, eval_every=1000)
    runs.write_run(tmp_path / "one-env", seeds=2, stopped={1: "it broke"}, algo="sal")
    file = runs.write_run(tmp_path / "diverged", algo="cvi") / METRICS
    file.write_text(file.read_text().replace(",-1,\n", ",3000,\n"))
    found = runs.shown(good_runs, tmp_path)
    parent = tmp_path.name
    assert {(name.removeprefix(f"{parent}/"), what) for name, what in found["problems"]} == {
        ("stopped", "stopped early at step 4,000 of 10,000"),
        ("running", "unfinished at step 0 of 10,000"),
        ("running", "seed 0: rows to step 0 only"),
        ("failed", "failed at step 2,000 of 10,000"),
        ("one-env", "seed 1: it broke"),
        ("diverged", "diverged: seed 0 at step 3,000"),
        ("stopped", "seed 0 is in another run, and counts once"),
    }
    (one,) = found["sets"]
    algos = one["facets"][1]["values"]
    told = {algos[c["at"][1]]: (c["whole"], c["seeds"], c["diverged"]) for c in one["curves"]}
    assert told["dqn"] == (1, 1, 0)  # it reached what it was to reach, and says nothing
    assert told["pal"] == (0, 1, 0)
    assert told["sal"] == (1, 2, 0)
    assert told["cvi"] == (1, 1, 1)


def test_an_environment_that_is_not_here_is_not_imported(tmp_path, monkeypatch):
    (tmp_path / "evil.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    runs.write_run(tmp_path / "run", names={"env": "evil:Env-v0", "algo": "unheard-of"})
    assert runs.shown(tmp_path)["sets"][0]["facets"][0]["values"] == ["evil:Env-v0"]


def test_a_folder_that_is_given_twice_counts_once(good_runs):
    found = runs.shown(good_runs, good_runs / "tal-0", good_runs / ".")
    assert len(found["runs"]) == 4
    assert found["problems"] == []


def test_an_empty_folder_beside_a_good_one_is_said(good_runs, tmp_path):
    (tmp_path / "empty").mkdir()
    assert runs.shown(good_runs, tmp_path / "empty")["problems"] == [
        ("empty", "no run and no results in it")
    ]


def test_json_is_plain_and_closes_nothing():
    value = "</script><!--&\u2028\u2029\ud800\x00"
    found = as_json({"x": value})
    assert found.isascii()
    assert not set("<>&") & set(found)
    assert json.loads(found) == {"x": value}


# --- Results of studies ---------------------------------------------------------------------------


def test_results_have_claims_if_they_are_the_papers(tmp_path, monkeypatch):
    monkeypatch.setattr(judging, "CLAIMS", CLAIMS[:12])  # the last two are compiled, not read
    own = {"env": "CartPole-v1", "q": "1", "log_weight": ""}
    one = {"labels": {**own, "algo": "mdqn"}, "seeds": 10, "level": 475.0}
    two = {"labels": {**own, "algo": "mt-dqn", "q": "2"}, "seeds": 10, "level": 20.0}
    chance = {"labels": {"env": "CartPole-v1", "algo": "dqn"}, "seeds": 5, "level": 20.0}
    runs.write_results(tmp_path / "fig1", [one, two], failed={"x": "it broke"}, unfinished=["y"])
    runs.write_results(tmp_path / "random", [chance])
    found = runs.shown(tmp_path)
    (table,) = found["claims"]
    assert table["scale"] == "quick"
    assert {r["verdict"] for r in table["rows"] if r["claim"] == "C1"} == {"holds", "cannot say"}
    runs.write_results(tmp_path / "long" / "fig1", [one, two], scale="long")  # random play is not
    quick, long = (table["rows"] for table in runs.shown(tmp_path)["claims"])
    assert [r["verdict"] for r in long] == [r["verdict"] for r in quick]
    shutil.rmtree(tmp_path / "long")
    assert [s["name"] for s in found["sets"]] == ["fig1", "random"]
    assert found["problems"] == [("fig1", "x failed: it broke"), ("fig1", "1 runs unfinished: y")]
    shutil.rmtree(tmp_path / "random")
    (tmp_path / "fig1").rename(tmp_path / "mine")
    about = json.loads((tmp_path / "mine" / "about.json").read_text())
    (tmp_path / "mine" / "about.json").write_text(json.dumps({**about, "study": "mine"}))
    assert runs.shown(tmp_path)["claims"] == []


# --- The command ----------------------------------------------------------------------------------


def test_the_command_writes_a_page(good_runs, tmp_path, capsys):
    out = tmp_path / "report.html"
    assert cli.main(["report", str(good_runs), "-o", str(out)]) == 0
    assert "4 runs" in capsys.readouterr().out
    page = out.read_text("ascii")
    assert "{{" not in page.partition("<style>")[0]
    assert str(good_runs) not in page
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give one or more folders of runs"),
        (["{0}/nowhere"], "there is no folder"),
        (["{0}/empty"], "nothing to report: empty: no run and no results in it"),
        (["{0}", "-o", "{0}/x.json"], "ends in .html"),
        (["{0}", "-o", "{0}/nowhere/x.html"], "cannot be written"),
        (["{0}", "-o", "{0}/folder.html"], "cannot be written"),
    ],
)
def test_bad_input_is_one_line(arguments, words, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    (tmp_path / "folder.html").mkdir()
    assert cli.main(["report", *(a.format(tmp_path) for a in arguments)]) == 2
    message = capsys.readouterr().err
    assert words in message
    assert message.count("\n") == 1


def test_clips_are_inside_if_they_are_clips(tmp_path, monkeypatch):
    folder = runs.write_run(tmp_path / "run")
    (folder / "play.gif").write_bytes(b"GIF89a" + bytes(50))
    (folder / "fake.mp4").write_bytes(b"<script>alert(1)</script>")
    found = runs.shown(tmp_path)
    assert [(c["name"], c["kind"]) for c in found["clips"]] == [("run/play.gif", "image/gif")]
    assert found["problems"] == [("run/fake.mp4", "no .mp4 video")]
    monkeypatch.setattr(gather, "CLIP_BYTES", 40)
    assert ("run/play.gif", "left out: the clips are too large") in runs.shown(tmp_path)["problems"]
    out = tmp_path / "page.html"
    assert cli.main(["report", str(tmp_path), "-o", str(out), "--no-clips"]) == 0
    assert "image/gif" not in out.read_text().partition('id="data">')[2].partition("</script>")[0]
