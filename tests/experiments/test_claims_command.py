"""The identities C13 and C14, and `tsallax claims` on tables made for it."""

import json
import os
import re

import pytest

from support.made_tables import RANDOM, evidence, fig1
from tsallax import cli
from tsallax.experiments import identities
from tsallax.experiments.claims import CLAIMS
from tsallax.experiments.judging import judge
from tsallax.experiments.results import COLUMNS
from tsallax.report.claims_table import details


@pytest.mark.parametrize("identity", [claim.identity for claim in CLAIMS[12:]])
def test_the_identities_hold(identity):
    assert all(one.holds for one in identity())


def test_an_identity_that_is_none_is_found_out(monkeypatch):
    """Munchausen's clip breaks it."""
    real = identities.sequence
    clipped = lambda mdp, algo, **own: real(mdp, algo, **own | {"clip": -0.01})  # noqa: E731
    monkeypatch.setattr(identities, "sequence", clipped)
    assert not any(one.holds for one in identities.kl_recursion())


ABOUT = {
    "title": "made", "done": 3, "jobs": 3, "environment steps": 1, "core hours": 0.0,
    "unfinished": [], "failed": {}, "versions": {},
}  # fmt: skip
MARKED = """before
<!-- claims: begin -->
stale
<!-- claims: end -->
<!-- readings: begin -->
<!-- readings: end -->
<!-- figures: begin -->
<!-- figures: end -->
after
"""


def write_results(folder, scale, curves):
    folder.mkdir(parents=True)
    keys = list(curves[0].labels)
    lines = [",".join([*keys, "seed", "step", *COLUMNS])]
    for c in curves:
        for i, seed in enumerate(c.seeds):
            for t, step in enumerate(c.steps):
                numbers = [c.columns[name][i, t] for name in COLUMNS]
                lines.append(",".join(map(str, [*c.labels.values(), seed, step, *numbers])))
    (folder / "metrics.csv").write_text("\n".join(lines) + "\n")
    (folder / "about.json").write_text(json.dumps(ABOUT | {"scale": scale, "study": folder.name}))


@pytest.fixture
def results(tmp_path):
    """Figure 1 at two scales, random play at one."""
    write_results(tmp_path / "results" / "quick" / "random", "quick", [RANDOM])
    write_results(tmp_path / "results" / "quick" / "fig1", "quick", fig1(munchausen=300))
    write_results(tmp_path / "results" / "long" / "fig1", "long", fig1(steps=500_000))
    return tmp_path / "results"


def test_the_command_prints_a_line_per_claim(results, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "300")  # else lines are broken as the terminal has it
    assert cli.main(["claims", str(results)]) == 0
    out = capsys.readouterr().out
    rows = [line for line in out.splitlines() if re.match(r"│ C\d+ ", line)]
    assert [row.split()[1] for row in rows] == [f"C{i}" for i in range(1, 15)]
    assert re.search(
        r"holds: depends on one run +│ CartPole-v1, weight alpha +│ long, 10 ", rows[0]
    )
    assert "cannot say: not run" in rows[1]
    assert "is at most 0.05" in out
    assert "p = " not in out
    assert cli.main(["claims", str(results / "quick"), "--details"]) == 0
    out = capsys.readouterr().out
    assert "does not hold: primary; depends on one run" in out
    assert "holds: exploratory" in out
    assert "MT-DQN learns nothing, below 0.1: 0 of 10 runs (p = 1 for, 0.00098 against)" in out
    assert "together p = 1 for, 0.002 against; corrected 1 and 0.047" in out


def test_the_command_writes_the_page(results, tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text(MARKED)
    assert cli.main(["claims", str(results), "--write", str(page)]) == 0
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "stale" not in text
    line = "| **holds** (depends on one run) | CartPole-v1, weight alpha | long, 10 seeds |"
    assert line in text.partition("<!-- readings")[0]
    assert "| fig1 | C1 holds |  |  |  |  |  | C1 holds |" in text
    section = text.split("### fig1")[1].split("###")[0]
    assert section.index("](results/quick/fig1/fig1.png)") < section.index("](results/long/fig1/")
    assert "| mdqn | 1 |  | 100,000 | 10 | 400 ± 0 | 400 (400 to 400) |" in section
    assert "| C1 | CartPole-v1, weight 1 | long, 10 seeds | **holds** (exploratory" in section


def test_of_undecided_readings_a_page_shows_only_the_primary_one():
    judged = judge(evidence(fig1=fig1(mdqn=100)))
    text = details([one for one in judged if one.claim.name == "C1"], "fig1")
    assert "| C1 | CartPole-v1, weight alpha | quick, 10 seeds | **cannot say** (primary" in text
    assert "weight 1" not in text
    assert text.endswith("1 further reading: **cannot say**.")


def test_twice_the_same_table_and_empty_folders_are_refused(results, tmp_path, capsys):
    write_results(results / "copy" / "fig1", "quick", fig1())
    assert cli.main(["claims", str(results)]) == 2
    assert "both hold fig1 at scale 'quick'" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert cli.main(["claims", str(tmp_path / "empty")]) == 2
    assert "no results" in capsys.readouterr().err
    assert cli.main(["claims", str(tmp_path / "none")]) == 2


@pytest.mark.parametrize(
    "harm",
    [
        lambda path: path.write_text("[" * 100_000),
        lambda path: path.write_text(json.dumps(ABOUT)),  # no scale
        lambda path: path.write_text(json.dumps(ABOUT | {"scale": ["quick"], "study": "fig1"})),
        lambda path: path.write_bytes(b"\xff\x00"),
        lambda path: os.truncate(path, 1 << 30),  # sparse
        lambda path: (path.unlink(), path.symlink_to("/dev/zero")),
        lambda path: (path.unlink(), os.mkfifo(path)),
    ],
)
def test_a_hostile_provenance_is_one_line(results, harm, capsys):
    """The endless and the enormous are refused unread."""
    harm(results / "quick" / "fig1" / "about.json")
    assert cli.main(["claims", str(results)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("column", ["env", "algo"])
def test_a_table_that_lacks_a_label_is_one_line(results, column, capsys):
    table = results / "quick" / "random" / "metrics.csv"
    table.write_text(table.read_text().replace(column, "other", 1))
    assert cli.main(["claims", str(results)]) == 2
    err = capsys.readouterr().err
    assert f"lacks {column} before the seed" in err
    assert err.count("\n") == 1


def test_an_endless_page_is_not_read(results, tmp_path, capsys):
    assert cli.main(["claims", str(results), "--write", "/dev/zero"]) == 2
    assert "zero is not a regular file" in capsys.readouterr().err
