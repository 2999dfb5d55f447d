"""Verdicts by hand, and claims on tables made for them."""

import json
import math

import numpy as np
import pytest

from tsallax import cli
from tsallax.experiments import identities, verdicts
from tsallax.experiments.claims import CLAIMS, Evidence, munchausen
from tsallax.experiments.evidence import Missing
from tsallax.experiments.results import COLUMNS, Curve
from tsallax.experiments.study import load, settings
from tsallax.experiments.verdicts import HOLDS, NOT, OPEN


def scores(*values):
    return [np.array(values, float)]


def test_sign_test_by_hand():
    """5 of 5: 1/32. 4 of 5: (5 + 1)/32."""
    assert verdicts.sign_test(np.ones(5, bool)) == (1 / 32, 1.0)
    assert verdicts.sign_test(np.array([1, 1, 1, 1, 0], bool))[0] == 6 / 32


def test_permutation_test_by_hand():
    """{3, 4} and {1, 2}: of the 6 ways to choose two, this one alone has the largest mean."""
    more, less, difference = verdicts.compare(scores(3, 4), scores(1, 2))
    assert (more, less, difference) == (1 / 6, 1.0, 2.0)
    more, _, difference = verdicts.compare(scores(3, 4) * 2, scores(1, 2) * 2)
    assert (more, difference) == (1 / 36, 2.0)


def test_permutation_test_keeps_its_level():
    """Under the null hypothesis p <= 0.05 in at most 5 % of samples (and not in none)."""
    rng = np.random.default_rng(0)
    draws = rng.exponential(size=(1000, 2, 5))
    p = [verdicts.compare([x], [y])[0] for x, y in draws]
    assert 0.02 < np.mean(np.array(p) <= 0.05) <= 0.065


def test_drawn_permutations_agree_with_all_of_them(monkeypatch):
    rng = np.random.default_rng(1)
    x, y = [rng.normal(0.8, 1, 8)], [rng.normal(0, 1, 8)]
    exact = verdicts.compare(x, y)[0]
    monkeypatch.setattr(verdicts, "EXACT", 10_000)  # 12,870 ways
    assert verdicts.compare(x, y)[0] == pytest.approx(exact, abs=0.01)


NEAR = scores(0.40, 0.42, 0.44, 0.46, 0.48), scores(0.47, 0.49, 0.52, 0.54, 0.56)


@pytest.mark.parametrize(
    ("check", "verdict"),
    [
        (verdicts.learns("x", scores(0.9, 0.8, 0.9, 0.7, 1)), HOLDS),
        (verdicts.learns("x", scores(0.9, 0.8, 0.9, 0.7, 0)), OPEN),
        (verdicts.learns("x", scores(0, 0.1, 0, 0.2, 0)), NOT),
        (verdicts.learns("x", scores(0.9, 0.9, 0.9)), OPEN),  # three seeds are too few
        (verdicts.fails("x", scores(0, 0.01, 0, 0.05, 0)), HOLDS),
        (verdicts.fails("x", scores(0.2, 0.3, 0.5, 0.2, 0.9)), NOT),
        (verdicts.below("x", scores(0.2, 0.3, 0.5, 0.2, 0.9), 0.95), HOLDS),
        (verdicts.better(("x", "y"), scores(5, 6, 7, 8, 9), scores(1, 2, 3, 4, 4.5)), HOLDS),
        (verdicts.better(("x", "y"), scores(1, 2, 3, 4, 4.5), scores(5, 6, 7, 8, 9)), NOT),
        (verdicts.better(("x", "y"), scores(1, 9, 3, 4, 5), scores(2, 8, 3, 5, 5)), OPEN),
        (verdicts.better(("x", "y"), scores(*[0.5] * 5), scores(*[0.499] * 5)), NOT),
        (verdicts.not_worse(("x", "y"), scores(*[0.5] * 5), scores(*[0.51] * 5)), HOLDS),
        (verdicts.not_worse(("x", "y"), scores(*[0.1] * 5), scores(*[0.9] * 5)), NOT),
        (verdicts.not_worse(("x", "y"), *NEAR), OPEN),  # below, but perhaps within the margin
        (verdicts.alike(("x", "y"), scores(*[0.5] * 5), scores(*[0.52] * 5)), HOLDS),
        (verdicts.alike(("x", "y"), *NEAR), OPEN),
        (verdicts.alike(("x", "y"), scores(*[0.5] * 5), scores(*[0.9] * 5)), NOT),
        (verdicts.alike(("x", "y"), scores(0, 1), scores(0, 1)), OPEN),
    ],
)
def test_verdicts(check, verdict):
    assert check.verdict == verdict, check.text


def test_a_claim_is_as_good_as_its_parts():
    one, no, open_ = (verdicts.Check(v, "") for v in (HOLDS, NOT, OPEN))
    assert verdicts.together([one, one]) == HOLDS
    assert verdicts.together([one, open_]) == OPEN
    assert verdicts.together([one, open_, no]) == NOT


def curve(value, seeds=5, steps=100_000, **labels):
    """A run whose every return is `value`."""
    shape = (seeds, 50)
    columns = {name: np.full(shape, float(value)) for name in COLUMNS}
    columns["episodes"] = np.ones(shape)
    return Curve(
        labels, list(range(seeds)), np.linspace(steps / 50, steps, 50).astype(int), columns
    )


def evidence(mdqn=400, munchausen_tsallis=22, **own):
    common = {"env": "CartPole-v1", "log_weight": ""}
    fig1 = [
        curve(mdqn, algo="mdqn", q="1", **common, **own),
        curve(munchausen_tsallis, algo="mt-dqn", q="2", **common, **own),
        curve(9, algo="mt-dqn", q="2", **common | {"log_weight": "1"}, **own),
    ]
    return {"fig1": fig1, "random": [curve(22, algo="dqn", env="CartPole-v1")]}


def test_c1_holds_and_does_not():
    assert [f.verdict for f in munchausen(Evidence(evidence()))] == [HOLDS, HOLDS]
    learned = list(munchausen(Evidence(evidence(munchausen_tsallis=300))))
    assert [f.verdict for f in learned] == [NOT, HOLDS]


def test_scores_go_from_random_to_the_threshold():
    found = Evidence(evidence(mdqn=475)).scores("fig1", "CartPole-v1", "mdqn", q=1)
    np.testing.assert_allclose(found, 1.0)


def test_where_nothing_beats_random_actions_there_is_no_scale():
    game = {"env": "MinAtar/Breakout", "algo": "tal"}
    chance = curve(0.5, **game)
    chance.columns["episode_return"][:] += np.array([-0.1, -0.05, 0, 0.05, 0.1])[:, None]
    for level, clear in ((0.55, False), (0.7, True)):
        found = Evidence({"fig7": [curve(level, **game)], "random": [chance]})
        if clear:
            np.testing.assert_allclose(found.span("fig7", game["env"]), (0.5, level))
        else:
            with pytest.raises(Missing, match="no algorithm is clearly above random actions"):
                found.span("fig7", game["env"])


def test_random_actions_are_measured_wherever_a_claim_needs_them():
    for scale in ("smoke", "quick", "full"):
        chance = {setting.config.env for setting in settings(load("random"), scale)}
        for name in {n for claim in CLAIMS[:12] for n in claim.figure.split(", ")}:
            assert {setting.config.env for setting in settings(load(name), scale)} <= chance


def test_what_is_missing_is_said_and_nothing_else():
    for claim in CLAIMS[:12]:
        for found in claim.judge(Evidence({})):
            assert found.verdict == OPEN
            assert "no runs" in found.missing


def test_short_runs_and_runs_without_an_episode_say_nothing():
    tables = evidence()
    tables["fig1"][0] = curve(400, steps=2_000, **tables["fig1"][0].labels)
    assert "of the paper's 500,000" in next(munchausen(Evidence(tables))).missing
    tables["fig1"][0] = curve(math.nan, **tables["fig1"][0].labels)
    assert "no episode ended" in next(munchausen(Evidence(tables))).missing


@pytest.mark.parametrize("checks", [identities.munchausen_is_advantage, identities.kl_recursion])
def test_the_identities_hold(checks):
    assert {check.verdict for check in checks()} == {HOLDS}


def test_an_identity_that_is_none_is_found_out(monkeypatch):
    """Munchausen's clip breaks it."""
    real = identities.sequence
    clipped = lambda mdp, algo, **own: real(mdp, algo, **own | {"clip": -0.01})  # noqa: E731
    monkeypatch.setattr(identities, "sequence", clipped)
    assert {check.verdict for check in identities.kl_recursion()} == {NOT}


ABOUT = {
    "title": "made", "done": 3, "jobs": 3, "environment steps": 1, "core hours": 0.0,
    "unfinished": [], "failed": {},
}  # fmt: skip


def write_results(folder, scale, curves):
    folder.mkdir(parents=True)
    keys = list(curves[0].labels)
    lines = [",".join([*keys, "seed", "step", *COLUMNS])]
    for c in curves:
        for i, seed in enumerate(c.seeds):
            for t, step in enumerate(c.steps):
                row = [c.labels[k] for k in keys] + [
                    seed,
                    step,
                    *(c.columns[n][i, t] for n in COLUMNS),
                ]
                lines.append(",".join(map(str, row)))
    (folder / "metrics.csv").write_text("\n".join(lines) + "\n")
    (folder / "about.json").write_text(json.dumps(ABOUT | {"scale": scale, "study": folder.name}))


MARKED = """before
<!-- claims: begin -->
stale
<!-- claims: end -->
<!-- figures: begin -->
<!-- figures: end -->
after
"""


def test_the_command_prints_a_row_a_claim_and_writes_the_page(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    for name, curves in evidence().items():
        write_results(tmp_path / "quick" / name, "quick", curves)
    page = tmp_path / "page.md"
    page.write_text(MARKED)
    assert cli.main(["claims", str(tmp_path / "quick"), "--write", str(page)]) == 0
    out = capsys.readouterr().out
    assert all(f"C{i} " in out for i in range(1, 15))
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "stale" not in text
    assert "| **holds** |" in text
    assert "| fig2 | **not run**: 4 of 4 readings |" in text
    assert "](quick/fig1/fig1.png)" in text
    assert "| C1 | weight 1 | " in text.split("### fig1")[1].split("###")[0]
    assert "| mdqn | 1 |  | 100,000 | 5 | 400 ± 0 | 400 (400 to 400) |" in text


def test_mixed_scales_and_empty_folders_are_refused(tmp_path, capsys):
    for scale in ("quick", "smoke"):
        write_results(tmp_path / scale / "fig1", scale, evidence()["fig1"])
    assert cli.main(["claims", str(tmp_path)]) == 2
    assert "mixes the scales quick, smoke" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert cli.main(["claims", str(tmp_path / "empty")]) == 2
    assert "no results" in capsys.readouterr().err
    assert cli.main(["claims", str(tmp_path / "none")]) == 2
