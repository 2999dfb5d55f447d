"""Claims on tables made for them: evidence, readings and verdicts."""

import math
import re

import numpy as np
import pytest

from support.made_tables import RANDOM, curve, evidence, fig1, three
from tsallax.experiments.claims import CLAIMS, c1, c2, c3, c6, c7, c9, primary_readings
from tsallax.experiments.evidence import REFERENCE, Evidence, Missing
from tsallax.experiments.judging import NOT_RUN, examine, judge, remark
from tsallax.experiments.readings import COLUMNS as READINGS
from tsallax.experiments.study import load, parse, settings
from tsallax.experiments.verdicts import FAMILY, HOLDS, NOT, OPEN, correction, decide, scale
from tsallax.report.claims_table import figures_by_readings

TESTED = CLAIMS[:12]  # the last two are compiled, not read


def find(readings, name, found, primary=True):
    """The finding of one reading, corrected for its looks and for all claims."""
    (reading,) = (reading for reading in readings if reading.name == name)
    finding = examine(reading, found, primary)
    if finding.reason:
        return finding
    factor = correction(finding.measured.seeds, primary)
    return finding._replace(verdict=decide(scale(finding.p, factor)))


# --- Evidence -------------------------------------------------------------------------------------


def test_scores_go_from_random_play_to_the_threshold():
    (at,) = evidence(fig1=fig1(mdqn=475)).scales
    assert at.sample("fig1", "CartPole-v1", "mdqn", q=1).strata == pytest.approx([1.0])


def test_the_scale_of_minatar_is_fixed():
    """It is that of the game authors' DQN, and not of the study's own best."""
    for best in (1.0, 100.0):
        game = {"env": "MinAtar/Breakout", "q": "2"}
        own = Evidence({"long": {
            "random": [curve(0.5, algo="dqn", **game)],
            "fig7": [curve(5.3, algo="tal", **game), curve(best, algo="cvi", **game)],
        }}).scales[0]  # fmt: skip
        assert own.reference("MinAtar/Breakout") == (0.5, 10.1)
        assert own.games("fig7", "tal").strata[0] == pytest.approx(0.5)


@pytest.mark.parametrize("random", [475.0, 500.0])
def test_random_play_that_solves_an_environment_leaves_no_scale(random):
    tables = {"random": [curve(random, algo="dqn", env="CartPole-v1")], "fig1": fig1()}
    found = find(c1(), "CartPole-v1, weight alpha", Evidence({"long": tables}))
    assert found.reason == "random actions solve CartPole-v1 in these results: there is no scale"


def test_every_environment_of_a_claim_has_its_place_on_the_scale():
    """Random play is measured at every scale, and there is a reference."""
    figures = {name for claim in TESTED for name in claim.figure.split(", ")}
    for size in ("smoke", "quick", "full"):
        chance = {setting.config.env for setting in settings(load("random"), size)}
        for name in figures:
            found = {setting.config.env for setting in settings(load(name), size)}
            assert found <= chance
            assert all(env in REFERENCE for env in found if "/" in env)


def test_a_column_that_a_table_lacks_has_the_papers_value():
    found = evidence(fig2=three(100, 100, 400, q=3), readings=three(9, 9, 200, q=3, choices="sb3"))
    (at,) = found.scales
    own = at.sample("fig2", "CartPole-v1", "tal", q=3.0, policy="paper", choices="paper")
    assert own.mean > 0.8
    with pytest.raises(Missing, match=r"no runs of tal, CartPole-v1, q 3\.0, choices sb3"):
        at.sample("fig2", "CartPole-v1", "tal", q=3.0, choices="sb3")
    assert at.sample("readings", "CartPole-v1", "tal", q=3.0, choices="sb3").mean < 0.5
    with pytest.raises(Missing, match="no runs of"):
        at.sample("readings", "CartPole-v1", "tal", q=3.0, choices="paper")


def test_a_run_without_an_episode_says_nothing():
    finding = find(c1(), "CartPole-v1, weight alpha", evidence(fig1=fig1(mdqn=math.nan)))
    assert finding.reason == "mdqn on CartPole-v1: a run in which no episode ended"
    assert finding.verdict == OPEN


# --- When there is no verdict ---------------------------------------------------------------------


def test_what_is_missing_is_said_and_nothing_else():
    for claim, findings in judge(Evidence({}), TESTED):
        assert claim.name
        for found in findings:
            assert (found.verdict, remark(found)) == (OPEN, NOT_RUN)


def test_too_few_seeds():
    four = [curve(400, algo="mdqn", q=1, seeds=4, env="CartPole-v1", log_weight="")]
    found = find(c1(), "CartPole-v1, weight alpha", evidence(fig1=[*four, *fig1()[1:]]))
    assert (found.verdict, remark(found)) == (OPEN, "too few seeds: 4, and 5 are needed")


def test_too_short():
    """TAL is better than both, beyond doubt, but at 0.2 of the way to solved."""
    name = "CartPole-v1, q = 3, paper, weight alpha"
    for tal, verdict in ((22 + 0.2 * 453, OPEN), (22 + 0.3 * 453, HOLDS)):
        found = find(c3(), name, evidence(fig2=three(22, 22, tal, q=3)))
        assert found.verdict == verdict
        assert ("too short: the best, TAL, has come 0.20" in remark(found)) == (verdict == OPEN)


def test_all_may_be_poor_if_others_have_learned():
    """At q = -1 the best setting of the whole study must have learned."""
    poor = three(9, 9, 9, q=-1)
    (claim,) = (claim for claim in TESTED if claim.name == "C4")
    name = primary_readings()["C4"]
    assert find(claim.readings, name, evidence(fig2=poor)).reason.startswith("too short")
    learned = three(9, 9, 300, q=2)
    assert find(claim.readings, name, evidence(fig2=[*poor, *learned])).verdict == HOLDS


def test_a_verdict_that_depends_on_one_run_says_so():
    """Ten of ten decide C1; nine of ten would not."""
    found = find(c1(), "CartPole-v1, weight alpha", evidence(fig1=fig1()))
    assert (found.verdict, remark(found)) == (HOLDS, "depends on one run")
    returns = [400] * 9 + [30]
    found = find(c1(), "CartPole-v1, weight alpha", evidence(fig1=[
        curve(*returns, algo="mdqn", q=1, env="CartPole-v1", log_weight=""), *fig1()[1:]
    ]))  # fmt: skip
    assert found.verdict == OPEN
    assert re.fullmatch(r"not significant; about \d+ seeds needed", remark(found))


def test_the_seeds_that_a_verdict_would_take_have_their_price():
    """Of 10 runs 9 learn. At a level of 0.05 x 0.1/12 = 4.2e-4, 22 of 25 or 25 of 30 must.

    If each does with a chance of 0.9, that happens with 0.76 and 0.93: it takes 30 seeds.
    Two runs per seed of 100,000 steps, at 1e-6 core hours per step: 20 more seeds take 4 hours.
    """
    returns = [400] * 9 + [30]
    runs = [curve(*returns, algo="mdqn", q=1, env="CartPole-v1", log_weight=""), *fig1()[1:]]
    tables = {"quick": {"random": [RANDOM], "fig1": runs}}
    found = find(c1(), "CartPole-v1, weight alpha", Evidence(tables, {"quick": {"fig1": 1e-6}}))
    assert remark(found) == "not significant; about 30 seeds needed, 4 core hours more"


def test_what_is_too_short_or_has_too_few_seeds_has_its_price():
    """1e-6 core hours per step: 10 seeds x 3 runs x 500,000 steps, or 1 seed x 2 runs x 100,000."""
    rates = {"quick": {"fig2": 1e-6, "fig1": 1e-6}}
    tables = {"random": [RANDOM], "fig2": three(22, 22, 22 + 0.2 * 453, q=3)}
    found = find(
        c3(), "CartPole-v1, q = 3, paper, weight alpha", Evidence({"quick": tables}, rates)
    )
    assert remark(found).endswith("; 10 seeds of 500,000 steps take 15 core hours")
    four = [curve(400, algo="mdqn", q=1, seeds=4, env="CartPole-v1", log_weight=""), *fig1()[1:]]
    tables = {"random": [RANDOM], "fig1": four}
    found = find(c1(), "CartPole-v1, weight alpha", Evidence({"quick": tables}, rates))
    assert remark(found) == "too few seeds: 4, and 5 are needed, 0.2 core hours more"


def test_more_seeds_than_are_planned_are_said_to_be():
    """TAL is ahead by 0.02 with a spread of 0.1, and 0.1 would be ahead."""
    runs = three(200, 100, 400, q=3)
    spread = 45.3 * np.linspace(-1.5, 1.5, 10)
    near = [
        curve(*(mean + spread), algo=algo, q=2, env="CartPole-v1", policy="paper", log_weight="")
        for algo, mean in (("tsallis-dqn", 300), ("mt-dqn", 291), ("tal", 300))
    ]
    found = find(c2(), "CartPole-v1, q = 2, weight alpha", evidence(fig2=[*runs, *near]))
    assert re.search(r"about \d+ seeds needed, of which 30 are planned", remark(found))


# --- The claims -----------------------------------------------------------------------------------


def test_every_claim_has_one_primary_reading_of_its_own():
    assert set(primary_readings()) == {claim.name for claim in TESTED}
    assert len(TESTED) == FAMILY
    for claim in TESTED:
        names = [reading.name for reading in claim.readings]
        assert len(names) == len(set(names))
        assert primary_readings()[claim.name] in names
        assert {reading.column for reading in claim.readings} <= {*READINGS, ""}


def test_a_study_names_primary_readings():
    text = '[[runs]]\nenv = "CartPole-v1"\n[primary]\nC1 = "x"\n'
    assert parse(text, "own").primary == {"C1": "x"}
    with pytest.raises(ValueError, match=r"\[primary\] must name a reading"):
        parse(text.replace('"x"', "3"), "own")


def test_c1_holds_and_does_not():
    found = evidence(fig1=fig1())
    assert [find(c1(), r.name, found).verdict for r in c1()] == [HOLDS, HOLDS]
    learned = evidence(fig1=fig1(munchausen=300))
    assert [find(c1(), r.name, learned).verdict for r in c1()] == [NOT, HOLDS]


@pytest.mark.parametrize(
    ("returns", "verdict"),
    [
        ((200, 100, 400), HOLDS),  # the others learn but do not solve it
        ((460, 100, 520), OPEN),  # Tsallis-DQN solves it; one of four parts, so p = 4/1024
        ((300, 100, 250), NOT),  # TAL is not better
    ],
)
def test_c3_is_about_solving(returns, verdict):
    found = evidence(fig2=three(*returns, q=3))
    assert find(c3(), "CartPole-v1, q = 3, paper, weight alpha", found).verdict == verdict


def test_c6_has_two_readings_at_three_halves():
    """TAL is above the others, and does not converge."""
    found = evidence(fig4=three(9, 9, 300, q=1.5))
    start = "CartPole-v1, q = 3/2, paper, weight alpha, TAL"
    assert find(c6(), f"{start} above the others", found).verdict == HOLDS
    assert find(c6(), f"{start} converges", found).verdict == NOT
    optimal = evidence(fig4=three(9, 9, 500, q=1.5))
    assert find(c6(), f"{start} converges", optimal).verdict == HOLDS


def gaps(tal, tsallis, q, **own):
    """Runs of figure 5 with these action gaps; TAL's values are a tenth of the other's."""
    common = {"env": "CartPole-v1", "policy": "paper", "q": f"{q:g}"}
    return [
        curve(300, gap=tal, q_value=own.get("value", 5.0), algo="tal", **common),
        curve(300, gap=tsallis, q_value=50.0, algo="tsallis-dqn", **common),
    ]


def test_c7_compares_the_gap_relative_to_the_values():
    """1 of 5 is more than 2 of 50, and 1 of 5 less than 20 of 50."""
    spread = np.linspace(0.9, 1.1, 10)
    each = [c for q in (1.5, 2, 2.5, 3) for c in gaps(spread, 2 * spread, q)]
    name = "CartPole-v1, each q, paper"
    larger = evidence(fig5=[*each, *gaps(spread, 2 * spread, 4)])
    found = find(c7(), name, larger)
    assert found.verdict == HOLDS
    assert (
        "q = 2: TAL's relative gap > Tsallis-DQN's (log10): by +0.70" in found.lines[1]
    )  # 0.2/0.04
    smaller = evidence(fig5=[*each, *gaps(spread, 20 * spread, 4)])
    assert find(c7(), name, smaller).verdict == NOT


def test_c7_says_which_runs_diverged_and_leaves_them_out():
    """Values of 1,001 are more than ten times the largest return, 100."""
    spread = np.linspace(0.9, 1.1, 10)
    values = np.full(10, 5.0)
    values[:3] = 1001.0
    some = [c for q in (2, 2.5, 3, 4) for c in gaps(spread, 2 * spread, q)]
    found = find(c7(), "CartPole-v1, each q, paper", evidence(
        fig5=[*some, *gaps(spread, 2 * spread, 1.5, value=values)]
    ))  # fmt: skip
    assert found.lines[-1] == "q = 3/2: 3 of 10 runs of TAL diverged, the rest is compared"
    assert found.measured.seeds == 7
    values[:6] = 1001.0
    found = find(c7(), "CartPole-v1, each q, paper", evidence(
        fig5=[*some, *gaps(spread, 2 * spread, 1.5, value=values)]
    ))  # fmt: skip
    assert found.lines[-1] == "q = 3/2: 6 of 10 runs of TAL diverged, nothing is compared"
    assert len(found.measured.sentences) == 4
    assert found.verdict == HOLDS


def test_a_run_that_overflowed_has_diverged():
    one, two = gaps(1.0, 1.0, 2)
    one.columns["diverged"][0, 10:] = 20_000
    (at,) = evidence(fig5=[one, two]).scales
    assert at.relative_gaps("fig5", "CartPole-v1", "tal", q=2.0).diverged == 1


def games(study, **returns):
    """Two games of MinAtar, at these shares of the way to the reference."""
    tables = {"random": [], study: []}
    for env in ("MinAtar/Breakout", "MinAtar/Freeway"):
        tables["random"].append(curve(0.0, algo="dqn", env=env))
        for algo, score in returns.items():
            tables[study].append(curve(score * REFERENCE[env], algo=algo, env=env, q=2))
    return Evidence({"long": tables})


@pytest.mark.parametrize(
    ("returns", "verdict"),
    [
        ({"pal": 0.9, "mdqn": 0.9, "tal": 0.88, "sal": 0.4}, HOLDS),
        ({"pal": 0.9, "mdqn": 0.6, "tal": 0.88, "sal": 0.4}, NOT),  # MDQN is not among the best
        ({"pal": 0.9, "mdqn": 0.9, "tal": 0.5, "sal": 0.4}, NOT),  # TAL is not close
        ({"pal": 0.9, "mdqn": 0.9, "tal": 0.9, "sal": 0.95}, NOT),  # SAL is not behind
    ],
)
def test_c9_tests_best(returns, verdict):
    for study, words in (("fig6", ""), ("minatar", ", parallel learner")):
        found = games(study, **returns)
        assert find(c9(), f"all games together{words}", found).verdict == verdict
        assert find(c9(), f"Breakout{words}", found).verdict == verdict
        assert find(c9(), f"Asterix{words}", found).reason == NOT_RUN


def test_a_primary_verdict_is_corrected_for_the_other_claims():
    """Ten runs that agree: p = 1/1024, twice as much for half of the level, 12 claims."""
    (claim,) = (one for one in judge(evidence(fig1=fig1()), TESTED) if one.claim.name == "C1")
    primary, other = claim.findings
    assert primary.p.holds == other.p.holds == 1 / 1024
    assert primary.corrected.holds == pytest.approx(24 / 1024)
    assert other.corrected.holds == pytest.approx(1 / 1024 / 0.07)
    assert (primary.primary, other.primary) == (True, False)


# --- Several scales -------------------------------------------------------------------------------


def test_a_reading_is_judged_at_the_longest_scale_with_enough_seeds():
    short, long = fig1(), fig1(munchausen=300, steps=500_000)
    few = [c._replace(columns={n: v[:3] for n, v in c.columns.items()}) for c in long]
    random = {"random": [RANDOM]}
    for other, chosen, verdict in (
        (long, "long", NOT),
        (few, "quick", HOLDS),
        ([], "quick", HOLDS),
    ):
        tables = {"quick": {"fig1": short} | random, "long": {"fig1": other}}
        found = find(c1(), "CartPole-v1, weight alpha", Evidence(tables))
        assert (found.scale, found.verdict) == (chosen, verdict)
    alone = find(c1(), "CartPole-v1, weight alpha", Evidence({"long": {"fig1": few} | random}))
    assert (alone.scale, remark(alone)) == ("long", "too few seeds: 3, and 5 are needed")


def test_the_table_of_figures_and_readings():
    found = evidence(
        fig1=fig1(munchausen=300),
        fig2=[*three(200, 100, 400, q=3), *three(300, 100, 200, q=3, policy="exact")],
        readings=three(100, 100, 101, q=3, policy="printed", choices="paper"),
    )
    head, _, one, two, *rest = figures_by_readings(judge(found, TESTED)).splitlines()
    assert head.startswith("| | as in the text | policy `literal` | policy `printed` | policy `ex")
    assert one == "| fig1 | C1 does not hold |  |  |  |  |  | C1 holds |  |"
    assert two == "| fig2 | C3 holds |  | C3 cannot say | C3 does not hold |  |  |  |  |"
    assert [row.strip("| ") for row in rest] == [f"fig{i}" for i in range(3, 8)]
