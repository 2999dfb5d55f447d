"""The paper's claims C1 to C14, under each of their readings.

One reading of each claim is *primary*: the one that the text itself suggests. It is registered in
the table [primary] of the study's file before the study is run. The others are exploratory.
"""

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import NamedTuple

from tsallax.experiments import study
from tsallax.experiments.evidence import Measured, Scale, measured
from tsallax.experiments.exact_tests import (
    SOLVED,
    Sample,
    Sentence,
    above,
    below,
    better,
    learns,
    learns_nothing,
    not_worse,
)
from tsallax.experiments.identities import Identity, kl_recursion, munchausen_is_advantage
from tsallax.experiments.readings import (
    ACROBOT,
    CARTPOLE,
    FORMULAS,
    LIBRARIES,
    LUNAR,
    MINATAR,
    POLICIES,
    TEXT,
    WEIGHTS,
    Choice,
    Reading,
    Three,
    action_gaps,
    all_are_poor,
    of_games,
    of_three,
)


class Claim(NamedTuple):
    name: str
    text: str
    figure: str  # one or more, separated by ", "
    readings: tuple[Reading, ...] = ()
    identity: Callable[[], list[Identity]] | None = None  # instead of readings


def c1() -> Iterator[Reading]:
    def measure(at: Scale, choice: Choice) -> Measured:
        mdqn = at.sample("fig1", CARTPOLE, "mdqn", q=1)
        munchausen = at.sample("fig1", CARTPOLE, "mt-dqn", q=2, **choice.labels)
        return measured([learns(mdqn), learns_nothing(munchausen)], [mdqn, munchausen])

    for choice in WEIGHTS:
        yield Reading(f"{CARTPOLE}, {choice.name}", partial(measure, choice=choice), choice.column)


def c2() -> Iterator[Reading]:
    for env in (CARTPOLE, LUNAR):
        for choice in (*WEIGHTS, *(LIBRARIES if env == CARTPOLE else ())):
            yield of_three("fig2", env, 2.0, choice, _ordered)


def c3() -> Iterator[Reading]:
    for q in (3.0, 4.0):
        for choice in (*POLICIES, *FORMULAS, *(LIBRARIES if q == 3 else ())):
            yield of_three("fig2", CARTPOLE, q, choice, _only_tal_solves)


def c4() -> Iterator[Reading]:
    for env in (CARTPOLE, LUNAR):
        for choice in WEIGHTS:
            yield all_are_poor("fig2", env, choice)


def c5() -> Iterator[Reading]:
    yield of_three("fig3", ACROBOT, 2.0, TEXT, _ordered)
    for q in (3.0, 4.0):
        yield of_three("fig3", ACROBOT, q, TEXT, _only_tal_solves)
    yield all_are_poor("fig3", ACROBOT, TEXT)


def c6() -> Iterator[Reading]:
    for env in (CARTPOLE, LUNAR):
        for choice in (*POLICIES, *(LIBRARIES if env == CARTPOLE else ())):
            yield of_three("fig4", env, 1.5, choice, _tal_is_best, "TAL above the others")
            if choice.weight == "alpha":  # TAL has no log-policy
                yield of_three("fig4", env, 1.5, choice, _tal_converges, "TAL converges")
        for choice in (*POLICIES, *(FORMULAS if env == CARTPOLE else ())):
            says = _tal_is_best_not_optimal if env == CARTPOLE else _tal_is_best
            yield of_three("fig4", env, 2.5, choice, says)


def c7() -> Iterator[Reading]:
    yield from map(action_gaps, ("paper", "exact"))


def c8() -> Iterator[Reading]:
    def says(tal: Sample, tsallis: Sample, munchausen: Sample) -> list[Sentence]:
        return [better(tal, tsallis), learns_nothing(munchausen)]

    yield from of_games("fig6", ("tal", "tsallis-dqn", "mt-dqn"), says, MINATAR)


def c9() -> Iterator[Reading]:
    def says(pal: Sample, mdqn: Sample, tal: Sample, sal: Sample) -> list[Sentence]:
        best = [not_worse(pal, tal), not_worse(mdqn, tal)]
        close = [not_worse(tal, pal), not_worse(tal, mdqn)]
        behind = [better(other, sal) for other in (pal, mdqn, tal)]
        return [*best, *close, *behind]

    yield from of_games("fig6", ("pal", "mdqn", "tal", "sal"), says, MINATAR)


def c10() -> Iterator[Reading]:
    def says(cvi: Sample, tal: Sample) -> list[Sentence]:
        return [not_worse(cvi, tal), not_worse(tal, cvi)]

    yield from of_games("fig7", ("cvi", "tal"), says, MINATAR)


def c11() -> Iterator[Reading]:
    def says(tal: Sample, munchausen: Sample) -> list[Sentence]:
        return [learns(tal), learns_nothing(munchausen)]

    yield from of_games("fig8", ("tal", "mt-dqn"), says)


def c12() -> Iterator[Reading]:
    def compare(at: Scale, figure: str, one: str, two: str) -> Measured:
        samples = at.games(figure, one), at.games(figure, two)
        return measured([better(*samples)], samples)

    degraded = partial(compare, figure="fig9", one="tsallis-dqn", two="mt-dqn")
    improved = partial(compare, figure="fig10", one="tal", two="tsallis-dqn")

    def both(at: Scale) -> Measured:
        one, two = degraded(at), improved(at)
        least_learned = min(one.best, two.best, key=lambda best: best[1])
        return Measured(
            [*one.sentences, *two.sentences],
            min(one.seeds, two.seeds),
            max(one.steps, two.steps),
            least_learned,
            hours=one.hours + two.hours,
        )

    yield Reading("KungFuMaster and the four games", both)
    yield Reading("KungFuMaster", degraded)
    yield Reading("the four games", improved)


# What the claims say about the three algorithms


def _ordered(x: Three) -> list[Sentence]:
    return [not_worse(x.tal, x.tsallis), better(x.tsallis, x.munchausen)]


def _only_tal_solves(x: Three) -> list[Sentence]:
    """The text states that the others fail to solve the task, not that they learn nothing."""
    return [below(x.tsallis, SOLVED), below(x.munchausen, SOLVED), *_tal_is_best(x)]


def _tal_is_best(x: Three) -> list[Sentence]:
    return [better(x.tal, x.tsallis), better(x.tal, x.munchausen)]


def _tal_is_best_not_optimal(x: Three) -> list[Sentence]:
    return [*_tal_is_best(x), below(x.tal, SOLVED)]


def _tal_converges(x: Three) -> list[Sentence]:
    return [above(x.tal, SOLVED)]


def _claim(text: str, figure: str, readings: Callable[[], Iterator[Reading]]) -> Claim:
    return Claim(readings.__name__.upper(), text, figure, tuple(readings()))


CLAIMS = (
    _claim("MDQN (q = 1) learns CartPole, MT-DQN (q = 2) learns nothing", "fig1", c1),
    _claim("q = 2: TAL >= Tsallis-DQN > MT-DQN", "fig2", c2),
    _claim("q = 3, 4: Tsallis-DQN and MT-DQN do not solve CartPole, TAL is better", "fig2", c3),
    _claim("q = -1: all three are poor", "fig2", c4),
    _claim("Acrobot: as C2 to C4", "fig3", c5),
    _claim("q = 3/2: TAL converges, the others fail; q = 5/2: TAL is best", "fig4", c6),
    _claim("TAL's action gap is larger than Tsallis-DQN's, for each q", "fig5", c7),
    _claim("MinAtar: TAL is better than Tsallis-DQN, MT-DQN is flat", "fig6", c8),
    _claim("MinAtar: PAL and MDQN are best, TAL is close, SAL is behind", "fig6", c9),
    _claim("MinAtar: CVI and TAL (q = 2) are alike", "fig7", c10),
    _claim("Atari: TAL learns, MT-DQN does not", "fig8", c11),
    _claim("Atari: MT-DQN degrades Tsallis-DQN, TAL improves on it", "fig9, fig10", c12),
    Claim("C13", "At q = 1 TAL is Munchausen RL, and CVI rewrites into MDQN", "appendix",
          identity=munchausen_is_advantage),
    Claim("C14", "With beta = 1, MDQN's Q - tau ln pi obeys the KL-regularised recursion", "eq. 9",
          identity=kl_recursion),
)  # fmt: skip


@cache
def primary_readings() -> dict[str, str]:
    """The primary reading of each claim, from the files of the studies."""
    every = (study.load(name).primary for name in study.names())
    return {claim: reading for primary in every for claim, reading in primary.items()}
