"""`--only`: a sweep of some of a study's settings."""

import pytest

from tsallax import cli
from tsallax.cli import sweep_runner
from tsallax.experiments import results, sweep
from tsallax.experiments.study import parse, settings

STUDY = """
[common]
env = "CartPole-v1"
steps = 400
seeds = 2
[[runs]]
algo = ["tal", "tsallis-dqn"]
q = [1.5, 2]
[[runs]]
algo = "mt-dqn"
q = 2
log_weight = 1
"""


def chosen(*words: str) -> list[tuple[str, float, str]]:
    study = parse(STUDY, "small")
    found = results.only([study], {"small": settings(study)}, words)
    labels = [setting.labels for own in found.values() for setting in own]
    return [(one["algo"], one["q"], one["log_weight"]) for one in labels]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), [("tal", 1.5, ""), ("tal", 2, ""), ("tsallis-dqn", 1.5, ""), ("tsallis-dqn", 2, ""),
              ("mt-dqn", 2, 1)]),
        (("q=1.5",), [("tal", 1.5, ""), ("tsallis-dqn", 1.5, "")]),
        (("q=2", "algo=tal,mt-dqn"), [("tal", 2, ""), ("mt-dqn", 2, 1)]),
        (("log_weight=", "q=2"), [("tal", 2, ""), ("tsallis-dqn", 2, "")]),
    ],
)  # fmt: skip
def test_settings_are_chosen_by_their_labels(words, expected):
    assert chosen(*words) == expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("q",), "FIELD=VALUE"),
        (("qq=2",), "did you mean 'q'"),
        (("q=3",), "there are 1.5, 2"),
        (("algo=tsalis-dqn",), "did you mean 'tsallis-dqn'"),
        (("algo=mt-dqn", "q=1.5"), "no setting has algo=mt-dqn and q=1.5"),
    ],
)
def test_what_no_setting_has_is_refused(words, message):
    with pytest.raises(ValueError, match=message):
        chosen(*words)


def test_a_sweep_runs_the_chosen_ones_alone(tmp_path, monkeypatch, capsys):
    (tmp_path / "small.toml").write_text(STUDY)
    started = []

    def run(jobs, *_):
        started.extend((job.config.algo, job.config.q, job.config.first_seed) for job in jobs)
        return sweep.Progress([], [], [], {})

    monkeypatch.setattr(sweep, "run", run)
    monkeypatch.setattr(sweep_runner, "executor", lambda *_: None)
    monkeypatch.setattr(sweep_runner, "estimate", lambda *_: None)
    command = ["sweep", str(tmp_path / "small.toml"), "--out", str(tmp_path / "out")]
    assert cli.main([*command, "--only", "algo=tal", "q=2"]) == 0
    assert started == [("tal", (2.0,), 0), ("tal", (2.0,), 1)]
    assert "10 runs, 10 cells; 2 to be done" in capsys.readouterr().out
