"""The time to solve: what is read from the contenders, and the table that is made of it."""

import json
from math import inf
from pathlib import Path

import pytest

PEERS = Path(__file__).parents[2] / "benchmarks/peers"


@pytest.fixture(autouse=True)
def _scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(PEERS))


def ended(seed, seconds, solved=True, steps=1000):
    found = {"seed": seed, "solved": solved, "seconds": seconds, "steps": steps}
    return {**found, "return": 0.0, "limit": 900.0}


def test_the_returns_that_cleanrl_prints_are_read():
    from solve_cleanrl import printed_return

    assert printed_return("global_step=512, episodic_return=[21.]\n") == (512, 21.0)
    assert printed_return("global_step=516, episodic_return=489.5\n") == (516, 489.5)
    assert printed_return("SPS: 3121\n") is None


def test_the_last_evaluation_of_a_run_is_read_from_its_metrics(tmp_path):
    from solve_tsallax import last_evaluation

    metrics = tmp_path / "metrics.csv"
    assert last_evaluation(metrics) == (0, 0.0)
    metrics.write_text("seed,step,eval_return\n0,100,\n0,200,31.5\n0,300,480.0\n0,400,\n")
    assert last_evaluation(metrics) == (300, 480.0)


def test_an_answer_beyond_the_limit_is_not_solved(tmp_path):
    from solve import last_line

    log = tmp_path / "log"
    log.write_text("a traceback\n")
    line = json.dumps(ended(0, 90.0))
    assert last_line(f"noise\n{line}\n", log, 100.0)["solved"]
    assert not last_line(line, log, 80.0)["solved"]
    with pytest.raises(RuntimeError, match="a traceback"):
        last_line("noise\n", log, 100.0)


def test_what_was_not_solved_counts_as_never():
    from solve_page import ratio, seconds, times

    cold = [ended(0, 20.0), ended(1, 10.0), ended(2, 20.0)]
    mixed = [ended(0, 40.0), ended(1, 900.0, solved=False), ended(2, 20.0)]
    assert times(mixed) == [40.0, inf, 20.0]
    assert seconds(mixed) == "40 (20 to never)"
    assert ratio(mixed, cold) == "2.00 (1.00 to never)"
    late = [ended(seed, 900.0, solved=False) for seed in range(3)]
    assert seconds(late) == "not within 900"
    assert ratio(late, cold) == "over 45.0"
    out_of_steps = [ended(seed, 70.0, solved=False, steps=50_000) for seed in range(3)]
    assert seconds(out_of_steps) == "not in its 50,000 steps"
    assert ratio(out_of_steps, cold) == ""


def test_everyone_has_a_row_and_who_is_absent_is_named():
    from solve_page import solve_section
    from solvers import COLD, SOLVERS, WARM

    sb3 = "Stable-Baselines3 DQN"
    found = {sb3: [ended(0, 60.0)], COLD: [ended(0, 20.0)], WARM: [ended(0, 5.0)]}
    text = solve_section({"machines": {"cartpole": "a machine"}, "tasks": {"cartpole": found}})
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert [row.split(" | ")[0] for row in rows[2:]] == [f"| {n}" for n in (COLD, WARM, sb3)]
    assert "3.00 (3.00 to 3.00)" in rows[-1]
    assert all(s.name in text for s in SOLVERS)


def test_every_contender_has_a_script_and_its_environment_is_pinned():
    from solvers import SOLVERS

    for solver in SOLVERS:
        assert (PEERS / f"solve_{solver.script}.py").exists()
        assert not solver.peers or (PEERS / f"{solver.peers}.txt").exists()
        assert solver.how


def test_the_real_page_has_the_marks():
    from solve_page import MARKS

    text = (PEERS.parent.parent / "docs/performance.md").read_text()
    assert 0 < text.find(MARKS[0]) < text.find(MARKS[1])
