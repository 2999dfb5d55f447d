"""The contenders of each work, their cores, and the differences between their work."""

from typing import NamedTuple

GYM, MINATAR, PONG = ("gym",), ("breakout", "seaquest"), ("pong",)
TAL, DQN = "tsallax TAL", "tsallax DQN"
SEEDS = 8


class Part(NamedTuple):
    """One process of a contender."""

    cores: tuple[int, ...]
    options: tuple[str, ...]


class Contender(NamedTuple):
    name: str
    script: str  # contend_*.py
    works: tuple[str, ...]
    options: tuple[str, ...] = ()
    peers: str = ""  # the virtual environment, if it is not tsallax's own
    against: tuple[str, ...] = (TAL, DQN)  # the contenders it is compared with
    wanted: tuple[tuple[str, str, float], ...] = ()  # works, whose ratio to it, on one core
    differs: str = ""


CONTENDERS = (
    Contender(TAL, "tsallax", GYM + MINATAR + PONG, ("--algo", "tal"), against=(DQN,)),
    Contender(DQN, "tsallax", GYM + MINATAR + PONG, ("--algo", "dqn"), against=(TAL,)),
    Contender(
        "Stable-Baselines3 DQN",
        "sb3",
        GYM + MINATAR,
        peers="sb3",
        wanted=(("gym", TAL, 2.0), ("breakout", TAL, 3.5), ("seaquest", TAL, 3.5)),
        differs="the environments of Gymnasium and of MinAtar, in Python; Huber's loss, which is "
        "built in. The clipping of gradients computes their norm, with a bound of infinity",
    ),
    Contender(
        "sb3-contrib QR-DQN",
        "sb3",
        PONG,
        peers="sb3",
        wanted=(("pong", TAL, 1.5),),
        differs="images are scaled by OpenCV, stacked before they are stored, and stored twice, "
        "as s and as s'",
    ),
    Contender(
        "sbx DQN",
        "sbx",
        GYM + MINATAR,
        peers="sb3",
        wanted=(("gym", DQN, 1.1), ("breakout", DQN, 1.5), ("seaquest", DQN, 1.5)),
        differs="environments, loop and replay are Stable-Baselines3's; Huber's loss, which is "
        "built in. For MinAtar's network a class of policies that builds it",
    ),
    Contender(
        "rejax DQN",
        "rejax",
        ("gym", "breakout"),
        peers="rejax",
        wanted=(("gym", DQN, 1.1), ("breakout", DQN, 1.5)),
        differs="gymnax's environments, where a time limit is a termination and no action is "
        "repeated at random; it has no Seaquest. CartPole: 4 environments step at once, so the "
        "network acts once in 4 steps. A batch is drawn without replacement, which goes through "
        "the whole replay. Half the squared loss. RMSProp is put into its state from outside; "
        "evaluation is replaced by a constant, so nothing of it remains",
    ),
    Contender(
        "plain JAX DQN",
        "plain",
        GYM + MINATAR,
        wanted=(("gym", DQN, 1.1), ("breakout", DQN, 1.5), ("seaquest", DQN, 1.5)),
        differs="contend_plain.py, on tsallax's environments; it learns from the first step on, "
        "and has no metrics",
    ),
    Contender(
        "matrix products of TAL",
        "matmul",
        GYM + MINATAR,
        ("--algo", "tal"),
        against=(TAL,),
        wanted=(("gym", TAL, 0.85),),
        differs="only those of the updates: no acting, no environment, no optimiser",
    ),
    Contender(
        "matrix products of DQN",
        "matmul",
        GYM + MINATAR,
        ("--algo", "dqn"),
        against=(DQN,),
        wanted=(("gym", DQN, 0.85),),
        differs="likewise, without the target network at s",
    ),
)
CROWDS = (f"{SEEDS} seeds, one process on one core", f"{SEEDS} seeds, one process a core")
SETTINGS = ("one", "two", "seeds")


def line_up(work: str, setting: str, cores: tuple[int, ...]) -> list[tuple[Contender, list[Part]]]:
    """The contenders that run `work`, with their processes."""
    if setting != "seeds":
        own = cores[: SETTINGS.index(setting) + 1]
        return [(c, [Part(own, c.options)]) for c in CONTENDERS if work in c.works]
    if work in PONG:
        return []
    tal = CONTENDERS[0]

    def part(core: int, seeds: int, first: int) -> Part:
        return Part((core,), (*tal.options, f"--seeds={seeds}", f"--first-seed={first}"))

    half = SEEDS // 2
    alone, split = [part(cores[0], SEEDS, 0)], [part(cores[i], half, half * i) for i in (0, 1)]
    return [
        (tal._replace(name=name), parts) for name, parts in zip(CROWDS, (alone, split), strict=True)
    ]
