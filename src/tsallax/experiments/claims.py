"""The paper's claims C1 to C14: the runs each needs, the test it applies, and the verdict.

A claim that leaves a choice open is judged once for each *reading* of it: the policy as the paper
approximates it or exact, the weight of the log-policy alpha or 1.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from tsallax.experiments import identities, verdicts
from tsallax.experiments.evidence import Evidence, Missing
from tsallax.experiments.verdicts import (
    Check,
    Scores,
    alike,
    below,
    better,
    fails,
    learns,
    not_worse,
)

CARTPOLE, LUNAR, ACROBOT = "CartPole-v1", "LunarLander-v3", "Acrobot-v1"
ALGOS = ("tsallis-dqn", "mt-dqn", "tal")


class Finding(NamedTuple):
    """A claim under one reading."""

    reading: str
    verdict: str
    checks: list[Check]
    missing: str = ""


Judge = Callable[[Evidence], Iterator[Finding]]


class Claim(NamedTuple):
    name: str
    text: str
    figure: str
    judge: Judge


WEIGHTS = {"weight alpha": "", "weight 1": 1}
POLICIES = ("paper", "exact")


def judged(reading: str, checks: Callable[[], list[Check]]) -> Finding:
    try:
        found = checks()
    except Missing as why:
        return Finding(reading, verdicts.OPEN, [], str(why))
    return Finding(reading, verdicts.together(found), found)


def munchausen(e: Evidence) -> Iterator[Finding]:
    """C1."""
    for words, weight in WEIGHTS.items():
        own = partial(e.scores, "fig1", CARTPOLE)
        yield judged(words, lambda own=own, weight=weight: [
            learns("MDQN", [own("mdqn", q=1)]),
            fails("MT-DQN", [own("mt-dqn", q=2, log_weight=weight)]),
        ])  # fmt: skip


def ordered(e: Evidence, study: str, env: str, reading: str, **labels: Any) -> Finding:
    """TAL >= Tsallis-DQN > MT-DQN."""

    def checks() -> list[Check]:
        x = {a: [e.scores(study, env, a, **labels)] for a in ALGOS}
        return [
            not_worse(("TAL", "Tsallis-DQN"), x["tal"], x["tsallis-dqn"]),
            better(("Tsallis-DQN", "MT-DQN"), x["tsallis-dqn"], x["mt-dqn"]),
        ]

    return judged(f"{env}, {reading}", checks)


def only_tal(e: Evidence, study: str, env: str, reading: str, **labels: Any) -> Finding:
    """TAL learns, the others do not."""

    def checks() -> list[Check]:
        x = {a: [e.scores(study, env, a, **labels)] for a in ALGOS}
        return [
            fails("Tsallis-DQN", x["tsallis-dqn"]),
            fails("MT-DQN", x["mt-dqn"]),
            learns("TAL", x["tal"]),
        ]

    return judged(f"{env}, {reading}", checks)


def none_learns(e: Evidence, study: str, env: str, reading: str, **labels: Any) -> Finding:
    def checks() -> list[Check]:
        return [fails(a, [e.scores(study, env, a, **labels)]) for a in ALGOS]

    return judged(f"{env}, {reading}", checks)


def sparsemax(e: Evidence) -> Iterator[Finding]:
    """C2."""
    for env in (CARTPOLE, LUNAR):
        for words, weight in WEIGHTS.items():
            yield ordered(e, "fig2", env, words, q=2, policy="paper", log_weight=weight)


def larger_q(e: Evidence) -> Iterator[Finding]:
    """C3."""
    for q in (3, 4):
        for policy in POLICIES:
            for words, weight in WEIGHTS.items():
                reading = f"q = {q}, {policy}, {words}"
                own = {"q": q, "policy": policy, "log_weight": weight}
                yield only_tal(e, "fig2", CARTPOLE, reading, **own)


def convex(e: Evidence) -> Iterator[Finding]:
    """C4."""
    for env in (CARTPOLE, LUNAR):
        for words, weight in WEIGHTS.items():
            reading = f"q = -1, {words}"
            yield none_learns(e, "fig2", env, reading, q=-1, policy="paper", log_weight=weight)


def acrobot(e: Evidence) -> Iterator[Finding]:
    """C5."""
    own: dict[str, Any] = {"policy": "paper", "log_weight": ""}
    yield ordered(e, "fig3", ACROBOT, "q = 2", q=2, **own)
    for q in (3, 4):
        yield only_tal(e, "fig3", ACROBOT, f"q = {q}, paper", q=q, **own)
    yield none_learns(e, "fig3", ACROBOT, "q = -1, paper", q=-1, **own)


def fractional(e: Evidence) -> Iterator[Finding]:
    """C6."""
    for env in (CARTPOLE, LUNAR):
        for policy in POLICIES:
            for words, weight in WEIGHTS.items():
                own = {"policy": policy, "log_weight": weight}
                yield only_tal(e, "fig4", env, f"q = 3/2, {policy}, {words}", q=1.5, **own)

                def checks(env: str = env, own: dict[str, Any] = own) -> list[Check]:
                    x = {a: [e.scores("fig4", env, a, q=2.5, **own)] for a in ALGOS}
                    best = [
                        better(("TAL", n), x["tal"], x[a])
                        for n, a in (("Tsallis-DQN", "tsallis-dqn"), ("MT-DQN", "mt-dqn"))
                    ]
                    return [*best, *([below("TAL", x["tal"], 0.95)] if env == CARTPOLE else [])]

                yield judged(f"{env}, q = 5/2, {policy}, {words}", checks)


def gap(e: Evidence) -> Iterator[Finding]:
    """C7."""
    for policy in POLICIES:
        for q in (1.5, 2, 2.5, 3, 4):
            own = partial(e.scores, "fig5", CARTPOLE, column="action_gap", q=q, policy=policy)
            yield judged(f"{CARTPOLE}, q = {q:g}, {policy}", lambda own=own: [
                better(("TAL's gap", "Tsallis-DQN's"), [own("tal")], [own("tsallis-dqn")], 0.0)
            ])  # fmt: skip


def games(e: Evidence, study: str, algo: str) -> Scores:
    """The scores of all games there are."""
    found = e.envs(study, "MinAtar/") + e.envs(study, "ALE/")
    if not found:
        raise Missing(f"no runs of {study}")
    return [e.scores(study, env, algo) for env in found]


def minatar(e: Evidence) -> Iterator[Finding]:
    """C8."""
    own = partial(games, e, "fig6")
    yield judged("all games together", lambda: [
        better(("TAL", "Tsallis-DQN"), own("tal"), own("tsallis-dqn"), 0.0),
        fails("MT-DQN", own("mt-dqn")),
    ])  # fmt: skip


def state_of_the_art(e: Evidence) -> Iterator[Finding]:
    """C9."""
    own = partial(games, e, "fig6")
    yield judged("all games together", lambda: [
        not_worse(("PAL", "TAL"), own("pal"), own("tal")),
        not_worse(("MDQN", "TAL"), own("mdqn"), own("tal")),
        not_worse(("TAL", "PAL"), own("tal"), own("pal")),
        not_worse(("TAL", "MDQN"), own("tal"), own("mdqn")),
        better(("TAL", "SAL"), own("tal"), own("sal"), 0.0),
    ])  # fmt: skip


def conservative(e: Evidence) -> Iterator[Finding]:
    """C10."""
    own = partial(games, e, "fig7")
    yield judged("all games together", lambda: [alike(("CVI", "TAL"), own("cvi"), own("tal"))])


def atari(e: Evidence) -> Iterator[Finding]:
    """C11."""
    own = partial(games, e, "fig8")
    yield judged("all games together", lambda: [
        learns("TAL", own("tal")), fails("MT-DQN", own("mt-dqn"))
    ])  # fmt: skip


def kungfu(e: Evidence) -> Iterator[Finding]:
    """C12."""
    master, four = partial(games, e, "fig9"), partial(games, e, "fig10")
    yield judged("KungFuMaster", lambda: [
        better(("Tsallis-DQN", "MT-DQN"), master("tsallis-dqn"), master("mt-dqn"), 0.0)
    ])  # fmt: skip
    yield judged("four games", lambda: [
        better(("TAL", "Tsallis-DQN"), four("tal"), four("tsallis-dqn"), 0.0)
    ])  # fmt: skip


def identity(checks: Callable[[], list[Check]], e: Evidence) -> Iterator[Finding]:
    yield judged("tabular MDPs, float64", checks)


CLAIMS = (
    Claim("C1", "CartPole: MDQN (q = 1) learns, MT-DQN (q = 2) learns nothing", "fig1", munchausen),
    Claim("C2", "q = 2: TAL >= Tsallis-DQN > MT-DQN", "fig2", sparsemax),
    Claim("C3", "CartPole, q = 3, 4: only TAL learns", "fig2", larger_q),
    Claim("C4", "q = -1: all three are poor", "fig2", convex),
    Claim("C5", "Acrobot: as C2 to C4", "fig3", acrobot),
    Claim("C6", "q = 3/2: only TAL learns; q = 5/2: TAL is best, not optimal on CartPole", "fig4",
          fractional),
    Claim("C7", "TAL's action gap is larger than Tsallis-DQN's, for each q", "fig5", gap),
    Claim("C8", "MinAtar: TAL better than Tsallis-DQN, MT-DQN flat", "fig6", minatar),
    Claim("C9", "MinAtar: PAL and MDQN best, TAL close, SAL behind", "fig6", state_of_the_art),
    Claim("C10", "MinAtar: CVI and TAL (q = 2) alike", "fig7", conservative),
    Claim("C11", "Atari: TAL learns, MT-DQN does not", "fig8", atari),
    Claim("C12", "Atari: MT-DQN degrades Tsallis-DQN (KungFuMaster), TAL improves it",
          "fig9, fig10", kungfu),
    Claim("C13", "at q = 1 TAL is Munchausen RL, and CVI rewrites into MDQN", "appendix",
          partial(identity, identities.munchausen_is_advantage)),
    Claim("C14", "with beta = 1, MDQN's Q - tau ln pi obeys the KL-regularised recursion", "eq. 9",
          partial(identity, identities.kl_recursion)),
)  # fmt: skip
