"""Readings of a claim: each makes the choices that the text leaves open, so that it is testable."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from tsallax.experiments.evidence import Measured, Missing, Scale, measured
from tsallax.experiments.exact_tests import Sample, Sentence, better, learns_nothing
from tsallax.experiments.verdicts import FEWEST_SEEDS

CARTPOLE, LUNAR, ACROBOT = "CartPole-v1", "LunarLander-v3", "Acrobot-v1"
MINATAR = ("Asterix", "Breakout", "Freeway", "Seaquest", "SpaceInvaders")
INDICES = (1.5, 2.0, 2.5, 3.0, 4.0)  # of figure 5


class Choice(NamedTuple):
    """The choices of a reading where the text is ambiguous. The defaults are the text's own."""

    policy: str = "paper"
    choices: str = "paper"
    weight: str = "alpha"

    @property
    def labels(self) -> dict[str, Any]:
        """The labels of its runs in the tables of results."""
        weight = "" if self.weight == "alpha" else 1
        return {"policy": self.policy, "choices": self.choices, "log_weight": weight}

    @property
    def name(self) -> str:
        choices = f", choices {self.choices}" if self.choices != "paper" else ""
        return f"weight {self.weight}{choices}"

    @property
    def column(self) -> str:
        """The choice that differs from the text's own, if it is one; `paper` if none, else ""."""
        changed = [value for value in (self.policy, self.choices) if value != "paper"]
        changed += [f"weight {self.weight}"] if self.weight != "alpha" else []
        return "".join(changed) if len(changed) == 1 else "" if changed else "paper"

    def study(self, figure: str) -> str:
        """The study that contains its runs."""
        ours = self.policy in ("literal", "printed") or self.choices != "paper"
        return "readings" if ours else figure


TEXT = Choice()
WEIGHTS = (TEXT, Choice(weight="1"))
POLICIES = tuple(Choice(policy, weight=w) for policy in ("paper", "exact") for w in ("alpha", "1"))
FORMULAS = (Choice("literal"), Choice("printed"))
LIBRARIES = (Choice(choices="sb3"), Choice(choices="zoo"))
PARALLEL = "parallel"  # the column of the parallel learner, instead of Algorithm 1's replay
COLUMNS = ("paper", "literal", "printed", "exact", "sb3", "zoo", "weight 1", PARALLEL)


class Reading(NamedTuple):
    name: str
    measure: Callable[[Scale], Measured]  # raises `Missing` if the scale does not have its runs
    column: str = ""  # in the table of figures and readings, if any


# Readings about the three algorithms of figures 2 to 4


class Three(NamedTuple):
    """The three algorithms with one setting, on one environment."""

    tsallis: Sample
    munchausen: Sample
    tal: Sample


Says = Callable[[Three], list[Sentence]]


def of_three(
    figure: str, env: str, q: float, choice: Choice, says: Says, words: str = ""
) -> Reading:
    """A reading with the sentences of `says`; `words` distinguishes readings that differ in it."""

    def measure(at: Scale) -> Measured:
        samples = _three(at, figure, env, q, choice)
        return measured(says(samples), samples)

    return Reading(_name(env, q, choice, words), measure, choice.column)


def all_are_poor(figure: str, env: str, choice: Choice) -> Reading:
    """The reading at q = -1. Whether runs were long enough is judged by the study's other settings.

    If the best setting of the study on this environment has learned, then the number of steps and
    all else that the settings share were enough to learn, and poor results are due to q.
    """

    def measure(at: Scale) -> Measured:
        samples = _three(at, figure, env, -1.0, choice)
        return measured(map(learns_nothing, samples), samples, best=at.best(figure, env))

    return Reading(_name(env, -1.0, choice), measure, choice.column)


def _three(at: Scale, figure: str, env: str, q: float, choice: Choice) -> Three:
    own = partial(at.sample, choice.study(figure), env, q=q, **choice.labels)
    return Three(own("tsallis-dqn"), own("mt-dqn"), own("tal"))


def _name(env: str, q: float, choice: Choice, words: str = "") -> str:
    policy = f", {choice.policy}" if q != 2 else ""  # at q = 2 every policy is the same
    return f"{env}, q = {_index(q)}{policy}, {choice.name}" + (f", {words}" if words else "")


def _index(q: float) -> str:
    return f"{q:g}" if q == int(q) else f"{2 * q:g}/2"


# Readings about action gaps


def action_gaps(policy: str) -> Reading:
    """TAL's relative action gap compared with that of Tsallis-DQN, at each q.

    A diverged run has no meaningful gap. It is left out and counted, and a q at which fewer than
    FEWEST_SEEDS runs of either algorithm remain is not compared.
    """

    def measure(at: Scale) -> Measured:
        parts = [_gaps_at(at, q, policy) for q in INDICES]
        compared = [part for part in parts if part.sentences]
        notes = [note for part in parts for note in part.notes]
        if not compared:
            raise Missing("; ".join(notes))
        return Measured(
            [sentence for part in compared for sentence in part.sentences],
            min(part.seeds for part in compared),
            max(part.steps for part in compared),
            min((part.best for part in compared), key=lambda best: best[1]),
            tuple(notes),
            sum(part.hours for part in parts),
        )

    return Reading(f"{CARTPOLE}, each q, {policy}", measure, Choice(policy).column)


def _gaps_at(at: Scale, q: float, policy: str) -> Measured:
    where: dict[str, Any] = {"study": "fig5", "env": CARTPOLE, "q": q, "policy": policy}
    tal, tsallis = (at.relative_gaps(algo=algo, **where) for algo in ("tal", "tsallis-dqn"))
    returns = [at.sample(algo=algo, **where) for algo in ("tal", "tsallis-dqn")]
    text = f"q = {_index(q)}: TAL's relative gap > Tsallis-DQN's (log10)"
    larger = better(tal.sample, tsallis.sample, margin=0.0)._replace(text=text)
    found = measured([larger], returns)._replace(seeds=min(tal.sample.seeds, tsallis.sample.seeds))
    diverged = [f"{g.diverged} of {r.seeds} runs of {r.name}"
                for g, r in zip((tal, tsallis), returns, strict=True) if g.diverged]  # fmt: skip
    if not diverged:
        return found
    left = [] if found.seeds < FEWEST_SEEDS else found.sentences
    rest = "the rest is compared" if left else "nothing is compared"
    note = f"q = {_index(q)}: {' and '.join(diverged)} diverged, {rest}"
    return found._replace(sentences=left, notes=(note,))


# Readings about games


def of_games(
    figure: str,
    algos: tuple[str, ...],
    says: Callable[..., list[Sentence]],
    names: tuple[str, ...] = (),
) -> Iterator[Reading]:
    """Readings for all games of a figure together, and for each of those in `names`."""

    def measure(at: Scale, study: str, env: str = "") -> Measured:
        samples = [at.games(study, algo, env) for algo in algos]
        games = ", ".join(name.rpartition("/")[2] for name in at.environments(study))
        return measured(says(*samples), samples, notes=() if env else (f"games: {games}",))

    learners = ((figure, "", TEXT.column), ("minatar", ", parallel learner", PARALLEL))
    for study, words, column in learners if names else learners[:1]:
        yield Reading(f"all games together{words}", partial(measure, study=study), column)
        for name in names:
            yield Reading(f"{name}{words}", partial(measure, study=study, env=f"MinAtar/{name}"))
